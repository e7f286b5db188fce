# Functions of the scripts: steps with their time, packages, configuring and building. Sourced, never run.
# shellcheck shell=bash

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# The scripts read what tools print, so tools speak one language; some containers have no locale at all.
export LC_ALL=C.UTF-8

fail() {  # fail MESSAGE [HELP]: ends the script
  printf 'error: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf '  help: %s\n' "$2" >&2
  exit 1
}

usage_error() {
  printf 'error: %s; see %s --help\n' "$1" "$0" >&2
  exit 2
}

step() {  # step TITLE COMMAND...: says what starts, runs it, says how long it took
  local title=$1 start=$SECONDS status=0
  shift
  printf '== %s\n' "$title"
  "$@" || status=$?
  [ "$status" = 0 ] || { printf '== %s: failed after %d s\n' "$title" $((SECONDS - start)) >&2; exit "$status"; }
  printf '== %s: done in %d s\n' "$title" $((SECONDS - start))
}

# quietly LOG COMMAND...: a terminal sees the command's own progress; elsewhere its output goes to LOG, with a line of
# progress now and then, and the end of it where the command fails.
quietly() {
  local log=$1 status=0 pid shown=$SECONDS
  shift
  if [ -t 1 ]; then
    "$@"
    return
  fi
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  trap 'kill "$pid" 2>/dev/null; exit 143' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    if [ $((SECONDS - shown)) -ge 20 ]; then
      shown=$SECONDS
      printf '   %s\n' "$(tail -n 1 "$log" | cut -c 1-150)"
    fi
  done
  wait "$pid" || status=$?
  trap - INT TERM
  [ "$status" = 0 ] || { tail -n 60 "$log" >&2; printf 'the whole output: %s\n' "$log" >&2; }
  return "$status"
}

cpu_seconds() {  # user and system time of this script's children that have ended
  awk -v tick="$(getconf CLK_TCK)" '{ print int(($16 + $17) / tick) }' "/proc/$$/stat"
}

build_cpu=0
time_spent() {  # wall and CPU time of this script so far, and the part of its builds in the latter
  awk -v wall=$SECONDS -v cpu="$(cpu_seconds)" -v build="$build_cpu" 'BEGIN {
    printf "wall %d min %d s, CPU %.1f min (build %.1f)\n", wall / 60, wall % 60, cpu / 60, build / 60 }'
}

jobs_of_machine() {  # one job a core, but no more than memory has room for: a heavy file takes 1 GiB
  local cores gib
  cores=$(nproc)
  gib=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  [ "${gib:-0}" -ge 1 ] || gib=1
  echo $((cores < gib ? cores : gib))
}

packages_of() {  # packages_of SECTION...: the names in these sections of packages.txt
  awk -v wanted=" $* " '
    /^\[/ { on = index(wanted, " " substr($1, 2, length($1) - 2) " ") }
    on && /^[a-z0-9]/ { print $1 }' scripts/packages.txt
}

missing_packages() {
  local have name
  have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | awk '$1 == "installed" {print $2}')
  for name in $(packages_of "$@"); do
    grep -qxF "$name" <<<"$have" || printf '%s\n' "$name"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "packages are missing, and neither root nor sudo is at hand" "as root: apt-get install $(xargs <<<"$missing")"
  fi
}

install_packages() {  # install_packages SECTION...: what is missing of these sections, and nothing where nothing is
  command -v dpkg-query >/dev/null ||
    fail "this is no Debian, so packages cannot be installed" \
         "install the like of what scripts/packages.txt names, then add --no-install"
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  step "Install packages: $(xargs <<<"$missing")" fetch_packages
}

fetch_packages() {
  # Without Error-Mode=any, apt takes an unreachable server for a success and fails later with a riddle.
  if ! quietly build/apt-update.log as_root apt-get update -q -o APT::Update::Error-Mode=any \
      -o Acquire::Languages=none; then
    fail "the package lists could not be fetched (apt's own words are above)" \
         "check the network, the proxy and /etc/apt, then run this command again: it goes on where it stopped"
  fi
  # shellcheck disable=SC2086 # one word a package
  if ! quietly build/apt-install.log as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -qy --no-install-recommends -o DPkg::Lock::Timeout=300 $missing; then
    fail "packages could not be installed (apt's own words are above)" \
         "repair what apt names, then run this command again"
  fi
}

# configure PRESET TESTS: where that was not done yet. TESTS are those to build: none, quick, or full, which are the quick
# and the long ones. A build that has more of them keeps them.
configure() {
  local preset=$1 tests=$2 cache=build/$1/CMakeCache.txt options=()
  case $tests in
    none) options=(-DBUILD_TESTING=OFF) ;;
    quick) options=(-DBUILD_TESTING=ON) ;;
    full) options=(-DBUILD_TESTING=ON -DTENON_FULL_TIER=ON) ;;
  esac
  if [ -f "build/$preset/build.ninja" ]; then
    case $tests in
      none) return 0 ;;
      quick) ! grep -q '^BUILD_TESTING:BOOL=OFF' "$cache" && return 0 ;;
      full) grep -q '^TENON_FULL_TIER:BOOL=ON' "$cache" && return 0 ;;
    esac
  fi
  step "Configure the $preset build" quietly "build/$preset/configure.log" cmake --preset "$preset" "${options[@]}"
}

build() {  # build PRESET [TARGET...]
  local preset=$1 jobs before
  shift
  before=$(cpu_seconds)
  jobs=$(jobs_of_machine)
  NINJA_STATUS='[%f/%t %es] ' step "Build $preset with $jobs jobs" \
    quietly "build/$preset/build.log" ninja -C "build/$preset" -j "$jobs" "$@"
  build_cpu=$((build_cpu + $(cpu_seconds) - before))
}
