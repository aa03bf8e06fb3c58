# shellcheck shell=sh
# What the scripts know of the machine they run on, and how they get what it
# lacks. Sourced by the scripts beside it.

# shellcheck disable=SC2034  # used by those who source this
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

# A caller can tell "this machine does not have it" from a failure (EX_UNAVAILABLE).
unavailable=69

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# lacks REASON...: end because the machine lacks something.
lacks() {
	say "$@"
	exit "$unavailable"
}

# usage_error TEXT...
usage_error() {
	say "$@; -h explains"
	exit 64
}

# architecture: that of this machine, in Docker's and Go's words.
architecture() {
	case $(uname -m) in
	x86_64) echo amd64 ;;
	aarch64) echo arm64 ;;
	*) uname -m ;;
	esac
}

# pinned NAME: the default of an ARG in the Dockerfile.
pinned() {
	sed -n "s/^ARG $1=//p" "$root/Dockerfile" | head -n 1
}

# version: what the binaries and images say they are.
version() {
	printf '%s\n' "${VERSION-$(git -C "$root" describe --tags --always --dirty 2>/dev/null || echo dev)}"
}

# install_packages PACKAGE...: from Debian, if this is Debian and we are root.
install_packages() {
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		say "cannot install $*: that needs root and apt-get"
		return 1
	fi
	say "installing $* with apt-get"
	if [ -z "${packages_listed-}" ]; then
		# A source that does not answer is no reason to stop: the others may do.
		apt-get update -qq >/dev/null 2>&1 || say "apt-get update had errors, going on"
		packages_listed=1
	fi
	install_output=$(DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" 2>&1) || {
		say "$install_output"
		return 1
	}
}

# need COMMAND PACKAGE...: make sure that COMMAND exists.
need() {
	need_command=$1
	shift
	command -v "$need_command" >/dev/null || install_packages "$@"
}

# docker_build ARG...: BuildKit where a client has it, else the classic builder. A
# client of version 23 or later needs the buildx component for BuildKit; an older
# one, such as Debian's, has it built in.
docker_build() {
	if docker buildx version >/dev/null 2>&1; then
		DOCKER_BUILDKIT=1 docker build "$@"
		return
	fi
	for client in docker /usr/bin/docker; do
		client_version=$("$client" version --format '{{.Client.Version}}' 2>/dev/null) || continue
		if [ "${client_version%%.*}" -lt 23 ]; then
			DOCKER_BUILDKIT=1 "$client" build "$@"
			return
		fi
	done
	say "no client here has BuildKit, using the classic builder"
	DOCKER_BUILDKIT=0 docker build "$@"
}
