#!/usr/bin/env bash
# A third-party XRT program on the emulated device: behavioral model or RTL. Arguments: tenon, the program, the
# XILINX_XRT directory, model, launches to time.
set -euo pipefail
tenon=$1 program=$2 root=$3 model=$4 launches=$5
# shellcheck source=tests/expect.sh
source tests/expect.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if readelf -d "$program" | grep NEEDED | grep -i tenon; then
  echo "the program is linked against Tenon"
  exit 1
fi
expect 0 "configuration tiny" "$tenon" xclbin write --config tiny --units 2 --memory 1 -o "$scratch/tiny.xclbin"
expect 0 "unit           tenon_kernel:tenon_2" "$tenon" xclbin show "$scratch/tiny.xclbin"
export XILINX_XRT=$root TENON_XRT_MODEL=$model
"$program" "$scratch/tiny.xclbin" "$launches"

# Through the driver: damaged and missing files are errors before XRT reads them.
run=("$tenon" run tests/models/resnet8_digits.onnx --data tests/models/resnet8_digits_test.npz:x --device)
head -c 1000 "$scratch/tiny.xclbin" >"$scratch/short.xclbin"
expect 1 "1000 bytes, its header says" "${run[@]}" "xrt:0?xclbin=$scratch/short.xclbin"
expect 1 "cannot open the file" "${run[@]}" "xrt:0?xclbin=$scratch/none.xclbin"
expect 2 "requires option xclbin" "${run[@]}" "xrt:0"
expect 2 "is not a device index" "${run[@]}" "xrt:zero?xclbin=$scratch/tiny.xclbin"
expect 1 "XRT cannot open the device" "${run[@]}" "xrt:1?xclbin=$scratch/tiny.xclbin"
expect 1 "the design has 2 units, requested is unit 3" "${run[@]}" "xrt:0?xclbin=$scratch/tiny.xclbin&unit=3"
expect 3 "XILINX_XRT is not set" env -u XILINX_XRT "${run[@]}" "xrt:0?xclbin=$scratch/tiny.xclbin"
