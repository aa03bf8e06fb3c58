.PHONY: demo test image bench smoke build clean

# Boots the real image with the real agent CLI and two sample repos.
demo:
	@scripts/demo

# Everything, Docker tests included; sets up what it needs.
test:
	@scripts/test

image:
	@scripts/images

bench:
	@scripts/bench/run

smoke: image
	@scripts/smoke agentic-workspace:dev

# Static binaries for both architectures, into build/linux-ARCH.
build:
	@scripts/build amd64 arm64

clean:
	rm -rf build
