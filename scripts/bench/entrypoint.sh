#!/usr/bin/env bash
# Prepares a workspace from the environment and starts the agent, with bash,
# git and jq: the entrypoint that agent-init takes the place of. The benchmark
# measures one against the other.
set -euo pipefail
shopt -s nullglob
# Directories are read in byte order.
LC_COLLATE=C

plugins_dir=${AGENTIC_PLUGINS_DIR:-/opt/agentic/plugins}
repos_dir=${AGENTIC_REPOS_DIR:-/repos}
baseline=${AGENTIC_MCP_BASELINE:-/opt/agentic/mcp.json}
workspace=${AGENTIC_WORKSPACE_DIR:-/workspace}
secrets_dir=${AGENTIC_SECRETS_DIR:-/run/secrets}
runtime_dir=${AGENTIC_RUNTIME_DIR:-/run/agentic}
mcp_config=${AGENTIC_MCP_CONFIG:-$runtime_dir/mcp.json}
repo_map=$runtime_dir/repos.json

errors=()

log() { printf 'entrypoint: %s\n' "$*" >&2; }

# load_secret NAME: take a variable that is not set from its file.
load_secret() {
	local name=$1 pointer=${1}_FILE file
	[[ -z ${!name-} ]] || return 0
	file=${!pointer:-$secrets_dir/$name}
	if [[ -r $file ]]; then
		export "$name=$(<"$file")"
	fi
}

# replace FILE: put stdin in its place, private and in one step, unless it is
# the same already.
replace() {
	local tmp
	tmp=$(mktemp "$1.XXXXXX")
	cat >"$tmp"
	if cmp -s "$tmp" "$1"; then
		rm "$tmp"
	else
		mv "$tmp" "$1"
	fi
}

# One line for the plugin's name and one for each variable that it declares,
# with fields that read(1) does not run together when one is empty.
# shellcheck disable=SC2016  # $ is jq's
declarations='
if (.name | type) != "string" or .name == "" then error("it has no name") else . end
| .name, (.requires_env // {} | to_entries[]
  | if (.value | type) != "object" then error("requires_env \(.key) is no object") else . end
  | [.key, .value.required // false, .value.default != null and (.value.secret | not), .value.default, .value.description]
  | join("\u001f"))'

plugin_flags=()
declare -A plugin_of
read_plugins() {
	local dir manifest declared plugin
	for dir in "$plugins_dir"/*/; do
		dir=${dir%/}
		manifest=$dir/.claude-plugin/plugin.json
		[[ -f $manifest ]] || continue
		if ! declared=$(jq -r "$declarations" "$manifest" 2>&1); then
			errors+=("cannot read $manifest: $declared")
			continue
		fi
		plugin=${declared%%$'\n'*}
		if [[ -n ${plugin_of[$plugin]-} ]]; then
			errors+=("two plugins are named $plugin: ${plugin_of[$plugin]} and $dir")
		fi
		plugin_of[$plugin]=$dir
		plugin_flags+=("--plugin-dir=$dir")
		if [[ $declared == *$'\n'* ]]; then
			read_variables "$plugin" <<<"${declared#*$'\n'}"
		fi
	done
}

read_variables() {
	local name required has_default default description
	while IFS=$'\x1f' read -r name required has_default default description; do
		load_secret "$name"
		if [[ -z ${!name-} && $has_default == true ]]; then
			export "$name=$default"
		fi
		if [[ -z ${!name-} && $required == true ]]; then
			errors+=("$name is not set, and plugin $1 requires it: $description")
		fi
	done
}

# Adds one source to what has been gathered: its MCP servers, and its place in
# the repo map if it is a repo. An entry that the agent would drop without a word
# is an error; an entry replaces that of the same name as a whole.
# shellcheck disable=SC2016
gather='
def checked($name):
  if type != "object" then error("\($name) is no object")
  elif .command == null and .url == null then error("\($name) has neither command nor url")
  elif .command == null and .type == null then error("\($name) has a url but no type")
  elif .command == "" then error("\($name) has an empty command")
  elif .args != null and (.args | type != "array" or any(type != "string")) then error("the args of \($name) are no list of strings")
  elif .env != null and (.env | type != "object" or any(type != "string")) then error("the env of \($name) is not made of strings")
  else . end;
def description($text):
  ($text | split("\n## ")) as $sections
  | def section($title): $sections[1:] | map(select(startswith($title + "\n")) | ltrimstr($title + "\n")) | first // "";
    def items($title): [section($title) | split("\n")[] | select(startswith("- ")) | ltrimstr("- ")];
  {
    source: (if $text == "" then "inferred" else "manifest" end),
    description: ([$sections[0] | split("\n\n")[] | select(startswith("#") or startswith("---") | not) | rtrimstr("\n")] | first // ""),
    kind: (section("Kind") | split("\n") | map(select(. != "")) | first // ""),
    capabilities: [items("Capabilities")[] | capture("^\\*\\*(?<name>[^*]+)\\*\\*: *(?<text>.*)")],
    rules: items("Rules")
  };
def files($kind): [$ARGS.positional[] | select(startswith($kind + "/")) | ltrimstr($kind + "/") | rtrimstr(".md")];
($mcp[0] // {}) as $file
| reduce ($file.mcpServers // {} | to_entries[]) as $s (.config = (.config // $file);
    (if .owner[$s.key] then .collisions += ["MCP server \($s.key) of \($name) overrides that of \(.owner[$s.key])"] else . end)
    | .owner[$s.key] = $name
    | .config.mcpServers[$s.key] = ($s.value | checked($s.key)))
| if $path == "" then . else .repos += [
    {$name, $path, writable: ($writable == "true")} + description($manifest)
    + {checks: files("checks"), playbooks: files("playbooks"), skills: files("skills"),
       mcp_servers: ($file.mcpServers // {} | keys_unsorted)}
  ] end'

gathered='{"owner": {}, "collisions": [], "repos": []}'
# add NAME PATH WRITABLE MANIFEST MCP [EXTENSION...]: a source; one without a path
# is no repo.
add() {
	local result
	if result=$(jq -c --arg name "$1" --arg path "$2" --arg writable "$3" --rawfile manifest "$4" --slurpfile mcp "$5" \
		"$gather" --args "${@:6}" <<<"$gathered" 2>&1); then
		gathered=$result
	else
		errors+=("cannot read $5: $result")
	fi
}

repos=()
read_repos() {
	local dir manifest mcp writable extensions
	for dir in "$repos_dir"/*/; do
		dir=${dir%/}
		repos+=("$dir")
		manifest=$dir/CLAUDE-OPS.md
		[[ -f $manifest ]] || manifest=/dev/null
		mcp=$dir/.claude-ops/mcp.json
		[[ -f $mcp ]] || mcp=/dev/null
		writable=false
		[[ ! -w $dir ]] || writable=true
		extensions=("$dir"/.claude-ops/{checks,playbooks,skills}/*.md)
		add "${dir##*/}" "$dir" "$writable" "$manifest" "$mcp" "${extensions[@]#"$dir/.claude-ops/"}"
	done
}

configure_git() {
	local dir
	local -A safe
	if [[ -n ${GIT_AUTHOR_NAME-} ]]; then
		export GIT_AUTHOR_EMAIL=${GIT_AUTHOR_EMAIL:-agent@agentic.local}
		export GIT_COMMITTER_NAME=${GIT_COMMITTER_NAME:-$GIT_AUTHOR_NAME}
		export GIT_COMMITTER_EMAIL=${GIT_COMMITTER_EMAIL:-$GIT_AUTHOR_EMAIL}
		git config --global user.name "$GIT_AUTHOR_NAME"
		git config --global user.email "$GIT_AUTHOR_EMAIL"
	fi
	git config --global init.defaultBranch main
	while IFS= read -r dir; do
		safe[$dir]=1
	done < <(git config --global --get-all safe.directory)
	for dir in "${repos[@]}" "$workspace" "$workspace"/repos/*/; do
		dir=${dir%/}
		[[ -n ${safe[$dir]-} ]] || git config --global --add safe.directory "$dir"
	done
}

store_credentials() {
	local token=${GITHUB_TOKEN:-${GH_TOKEN-}} file=$HOME/.git-credentials gh=$HOME/.config/gh
	[[ -n $token && ${AGENTIC_GIT_CREDENTIALS:-store} == store ]] || return 0
	{
		[[ ! -f $file ]] || grep -v '@github\.com$' "$file" || true
		printf 'https://x-access-token:%s@github.com\n' "$token"
	} | replace "$file"
	git config --global credential.helper store
	mkdir -p "$gh"
	printf 'github.com:\n    oauth_token: %s\n    user: x-access-token\n    git_protocol: https\n' "$token" |
		replace "$gh/hosts.yml"
}

for name in GITHUB_TOKEN GH_TOKEN ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN OPENAI_API_KEY; do
	load_secret "$name"
done
if [[ ${GITHUB_TOKEN-} == *$'\n'* ]]; then
	errors+=("GITHUB_TOKEN has a newline in it")
fi
read_plugins
if [[ -f $baseline ]]; then
	add baseline "" "" /dev/null "$baseline"
fi
read_repos
if [[ ${#errors[@]} -gt 0 ]]; then
	for error in "${errors[@]}"; do
		log "$error"
	done
	exit 78
fi

mkdir -p "$runtime_dir"
chmod 700 "$runtime_dir"
mkdir -p "$workspace"/artifacts/{input,output} "$workspace/repos" || log "cannot make the directories of $workspace"
configure_git
store_credentials

{
	read -r count
	while IFS= read -r collision; do
		log "$collision"
	done
} < <(jq -r '(.config.mcpServers // {} | length), .collisions[]' <<<"$gathered")
if ((count > 0)); then
	jq .config <<<"$gathered" | replace "$mcp_config"
	plugin_flags+=("--mcp-config=$mcp_config")
fi
jq '{repos}' <<<"$gathered" | replace "$repo_map"
export AGENTIC_REPO_MAP=$repo_map
export AGENTIC_PLUGIN_FLAGS=${plugin_flags[*]@Q}

if [[ ${1##*/} == claude ]]; then
	set -- "$1" "${plugin_flags[@]}" "${@:2}"
fi
exec "$@"
