# shellcheck shell=bash
# The Python environment of the benchmarks beside other engines: which packages they are, and how they get there. Sourced by
# scripts/bench_peers, scripts/bench_train and scripts/bench_batching, after scripts/lib.sh.
venv=build/peers/venv
python=$venv/bin/python
package() {  # package NAME: what pip calls it, pinned
  case $1 in
    onnxruntime) echo onnxruntime==1.31.0 ;;
    tvm) echo apache-tvm==0.27.0 ;;
    torch) echo torch==2.15.0 ;;
    dynet) echo dynet38==2.2 ;;
  esac
}
fetch() {  # fetch PACKAGE...
  quietly build/peers/pip.log "$python" -m pip install --disable-pip-version-check --retries 1 --timeout 30 "$@"
}
fetch_torch() {  # the build without CUDA where its index is reached: a fifth of the size
  case $(uname -m) in
    x86_64)
      fetch --index-url https://download.pytorch.org/whl/cpu "$(package torch)" 2>build/peers/torch.log && return
      printf '   PyTorch'\''s index of builds for the CPU is not reached: PyPI'\''s build instead, 5.4 GB with CUDA'\''s libraries\n'
      ;;
  esac
  fetch "$(package torch)"
}
has() { "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)" 2>/dev/null; }


make_environment() {  # make_environment yes|no PEER,...: with onnx, numpy and the peers, where pip reaches them
  local install=$1 peers=$2 peer
  local -a install_peer
  if [ "$install" = yes ]; then
    mkdir -p build/peers
    [ -x "$python" ] || step "Make the environment $venv" python3 -m venv "$venv"
    if ! has onnx || ! has numpy; then
      (step "Install onnx and numpy" fetch onnx==1.23.2 numpy==2.4.6) ||
        fail "pip cannot install onnx, which writes the models" "check the network, then run this command again"
    fi
    for peer in ${peers//,/ }; do
      case $peer in
        torch) install_peer=(fetch_torch) ;;
        *) install_peer=(fetch "$(package "$peer")") ;;
      esac
      has "$peer" || (step "Install $peer" "${install_peer[@]}") || true
    done
  elif [ ! -x "$python" ]; then
    python=python3
  fi
  if ! has onnx || ! has numpy; then
    fail "there is no Python with onnx and numpy, which write the models" "run this command where pip reaches the network"
  fi
}

# The command line of scripts/bench_train and scripts/bench_batching, which have a usage().
# shellcheck disable=SC2034 # they read what it sets
read_arguments() {
  models='' rounds=5 tenon=build/release/bin/tenon json='' install=yes
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h) usage; exit 0 ;;
      --no-install) install=no; shift; continue ;;
      --models | --rounds | --tenon | --json) [ $# -ge 2 ] || usage_error "$1 needs a value" ;;
      *) usage_error "unknown argument $1" ;;
    esac
    printf -v "${1#--}" '%s' "$2"
    shift 2
  done
  [[ $rounds =~ ^[1-9][0-9]{0,4}$ ]] || usage_error "--rounds is a number from 1 on, not '$rounds'"
  [ -x "$tenon" ] || fail "$tenon is not there" "build it: scripts/demo"
}
