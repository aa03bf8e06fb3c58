#include "textflag.h"

// The kernel's calling convention: R0 signal, R1 *siginfo_t, R2 *ucontext_t,
// R30 the kernel's own code that ends a handler. Only siginfo's si_code (8) and
// si_pid (16) are read. Nothing needs to be saved: rt_sigreturn restores every
// register.

// func onSignal()
TEXT ·onSignal(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVW	8(R1), R3
	CMPW	$0, R3
	BLE	sent
	// Raised by the kernel. ILL, TRAP, BUS, FPE, SEGV and SYS are then faults.
	MOVD	$0x800009B0, R3
	LSR	R0, R3, R3
	TBNZ	$0, R3, fault
sent:
	CMPW	$13, R0 // PIPE
	BEQ	own
	CMPW	$25, R0 // XFSZ
	BNE	note
own:
	MOVWU	16(R1), R3
	MOVWU	·ownPID(SB), R4
	CMPW	R3, R4
	BEQ	done
note:
	SUB	$1, R0, R3
	MOVD	$1, R4
	LSL	R3, R4, R4
	MOVD	$·arrived(SB), R5
again:
	LDAXR	(R5), R6
	ORR	R4, R6, R6
	STLXR	R6, (R5), R7
	CBNZ	R7, again
	MOVW	·wakeFD(SB), R0
	MOVD	$·one(SB), R1
	MOVD	$8, R2
	MOVD	$64, R8 // write
	SVC
done:
	RET
fault:
	MOVD	·faultHandler(SB), R3
	JMP	(R3)

// func handlerPC() uintptr
TEXT ·handlerPC(SB), NOSPLIT, $0-8
	MOVD	$·onSignal(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// func restorerPC() uintptr
TEXT ·restorerPC(SB), NOSPLIT, $0-8
	MOVD	ZR, ret+0(FP)
	RET

DATA	·one+0(SB)/8, $1
GLOBL	·one(SB), RODATA|NOPTR, $8
