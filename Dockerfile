# The workspace image: agent-init as PID 1, the agent CLI, and the image's plugins.
#
#   docker build -t agentic-workspace .                      the reference image
#   docker build --target binary -t agent-init .             only /agent-init, for
#                                                            COPY --from=agent-init /agent-init /
#
# Both the classic builder and BuildKit build it. PREBUILT names a directory of the
# context with files to take instead of making them here: agent-init, agent-cli/claude.
# The default holds neither, but has to exist for the patterns to match nothing.

ARG GO_IMAGE=golang:1.26-bookworm
ARG NODE_IMAGE=node:22-bookworm-slim
ARG BASE_IMAGE=debian:bookworm-slim

# The Go compiler crosses by itself, so it runs on the builder's own architecture;
# the classic builder sets no BUILDPLATFORM, and "linux" is its own.
FROM --platform=${BUILDPLATFORM:-linux} ${GO_IMAGE} AS build
ARG PREBUILT=docker
ARG TARGETARCH
ARG VERSION=dev
ARG GOPROXY
WORKDIR /src
# A pattern that matches nothing is no error beside a file that exists.
COPY go.mod ${PREBUILT}/agent-ini[t] /out/
COPY go.mod go.sum ./
RUN test -e /out/agent-init || go mod download
COPY cmd cmd
COPY internal internal
RUN test -e /out/agent-init || \
    CGO_ENABLED=0 GOOS=linux GOARCH="${TARGETARCH:-$(go env GOARCH)}" \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/agent-init ./cmd/agent-init

FROM scratch AS binary
COPY --from=build /out/agent-init /agent-init
ENTRYPOINT ["/agent-init"]

# The agent CLI is proprietary and fetched when the image is built. npm checks what
# it fetches against its registry; versions in agent-cli.sha512 are pinned here too.
FROM --platform=${BUILDPLATFORM:-linux} ${NODE_IMAGE} AS agent-cli
ARG PREBUILT=docker
ARG TARGETARCH
ARG CLAUDE_CODE_VERSION=2.1.197
WORKDIR /fetch
COPY docker/agent-cli.sha512 ${PREBUILT}/agent-cl[i]/claude /cli/
RUN set -eu; \
    test ! -e /cli/claude || exit 0; \
    arch="${TARGETARCH:-$(dpkg --print-architecture)}"; \
    case "$arch" in amd64) arch=x64 ;; esac; \
    tgz="anthropic-ai-claude-code-linux-$arch-$CLAUDE_CODE_VERSION.tgz"; \
    npm pack --silent "@anthropic-ai/claude-code-linux-$arch@$CLAUDE_CODE_VERSION"; \
    grep -F " $tgz" /cli/agent-cli.sha512 > pinned || echo "$tgz: not in agent-cli.sha512, checked by npm alone"; \
    if [ -s pinned ]; then sha512sum -c pinned; fi; \
    tar -xzf "$tgz" -C /cli --strip-components=1 --no-same-owner package/claude; \
    rm "$tgz" pinned

FROM ${BASE_IMAGE} AS workspace
RUN set -eu; \
    command -v bash && command -v git && command -v python3 && test -d /etc/ssl/certs && exit 0; \
    apt-get update; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends bash ca-certificates git python3; \
    rm -rf /var/lib/apt/lists/*
# /run/agentic, /workspace and /repos are here so that they exist, with the agent as
# their owner, where nothing is mounted over them.
RUN set -eu; \
    groupadd --gid 1000 agent; \
    useradd --uid 1000 --gid 1000 --create-home --home-dir /home/agent --shell /bin/bash agent; \
    install -d -o agent -g agent -m 0755 /workspace; \
    install -d -o agent -g agent -m 0700 /run/agentic; \
    install -d -m 0755 /repos /opt/agentic/bin /opt/agentic/libexec; \
    ln -s /opt/agentic/bin/agent-init /usr/local/bin/claude; \
    ln -s /opt/agentic/bin/agent-init /usr/local/bin/agent-init; \
    find / -xdev -type f -perm /6000 -exec chmod a-s '{}' +
COPY --from=agent-cli /cli/claude /opt/agentic/libexec/claude
COPY docker/python/ /usr/lib/python3/dist-packages/
COPY docker/git-hooks/ /opt/agentic/git-hooks/
COPY docker/plugins/ /opt/agentic/plugins/
COPY docker/prompts/ /opt/agentic/prompts/
COPY docker/mcp.json /opt/agentic/mcp.json
COPY --from=build /out/agent-init /opt/agentic/bin/agent-init

ARG VERSION=dev
ARG CLAUDE_CODE_VERSION=2.1.197
ARG REQUIRES_ENV='{"sdlc":{"SDLC_GUARD":{"default":"block","description":"What the guard does with a dangerous tool call: block, or warn (an event only)","required":false,"secret":false}},"workspace":{}}'
LABEL org.opencontainers.image.title="agentic-workspace" \
      org.opencontainers.image.description="A workspace for coding agents, with agent-init as PID 1" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      agentic.versions.agent-init="${VERSION}" \
      agentic.versions.claude-code="${CLAUDE_CODE_VERSION}" \
      agentic.requires_env="${REQUIRES_ENV}"
# The CLI's version is pinned, and the agent may not write where it is.
ENV PATH=/opt/agentic/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    DISABLE_AUTOUPDATER=1
USER agent
WORKDIR /workspace
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 CMD ["/opt/agentic/bin/agent-init", "health"]
ENTRYPOINT ["/opt/agentic/bin/agent-init"]
CMD ["bash"]
