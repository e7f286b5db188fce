# expect STATUS TEXT COMMAND...: the command ends with this exit code and says TEXT, on either stream. Sourced.
# shellcheck shell=bash
expect() {
  local want=$1 text=$2 status=0 output
  shift 2
  output=$("$@" 2>&1) || status=$?
  if [ "$status" != "$want" ] || [[ $output != *"$text"* ]]; then
    printf '%s\n  exit code %s, want %s\n  wanted text: %s\n  output: %s\n' "$*" "$status" "$want" "$text" "$output" >&2
    exit 1
  fi
}
