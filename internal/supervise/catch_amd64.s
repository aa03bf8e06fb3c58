#include "textflag.h"

// The kernel's calling convention: DI signal, SI *siginfo_t, DX *ucontext_t.
// Only siginfo's si_code (8) and si_pid (16) are read. Nothing needs to be
// saved: rt_sigreturn restores every register.

// func onSignal()
TEXT ·onSignal(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVL	8(SI), AX
	CMPL	AX, $0
	JLE	sent
	// Raised by the kernel. ILL, TRAP, BUS, FPE, SEGV and SYS are then faults.
	MOVL	$0x800009B0, CX
	BTQ	DI, CX
	JCS	fault
sent:
	CMPL	DI, $13 // PIPE
	JEQ	own
	CMPL	DI, $25 // XFSZ
	JNE	note
own:
	MOVL	16(SI), AX
	CMPL	AX, ·ownPID(SB)
	JEQ	done
note:
	MOVL	DI, CX
	DECL	CX
	MOVQ	$1, AX
	SHLQ	CX, AX
	LOCK
	ORQ	AX, ·arrived(SB)
	MOVL	·wakeFD(SB), DI
	LEAQ	·one(SB), SI
	MOVL	$8, DX
	MOVL	$1, AX // write
	SYSCALL
done:
	RET
fault:
	MOVQ	·faultHandler(SB), AX
	JMP	AX

TEXT ·restorer(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ	$15, AX // rt_sigreturn
	SYSCALL
	INT	$3

// func handlerPC() uintptr
TEXT ·handlerPC(SB), NOSPLIT, $0-8
	LEAQ	·onSignal(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

// func restorerPC() uintptr
TEXT ·restorerPC(SB), NOSPLIT, $0-8
	LEAQ	·restorer(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

DATA	·one+0(SB)/8, $1
GLOBL	·one(SB), RODATA|NOPTR, $8
