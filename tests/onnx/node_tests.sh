#!/usr/bin/env bash
# The ONNX backend node tests of one release: those of its list pass. Skipped where the release is not there.
set -euo pipefail

usage='Usage: tests/onnx/node_tests.sh PROGRAM onnx-1.22.0|debian-1.12 N [--update]; N: every Nth test is compiled too'
[ $# -ge 3 ] || { echo "$usage"; exit 2; }
program=$1 release=$2 compiled=$3
case $release in
  debian-1.12) folder=/usr/share/libonnx-testdata/data/node how='apt-get install libonnx-testdata' ;;
  *) folder=$(scripts/fetch_data --folder "$release") how=scripts/fetch_data ;;
esac
if [ ! -d "$folder" ]; then
  echo "skipped: the node tests of $release are not in $folder; $how fetches them"
  exit 77
fi
arguments=("$folder" "tests/onnx/$release.txt" --compiled "$compiled")
if [ "${4-}" = --update ]; then
  arguments+=(--update "tests/onnx/$release.md")
fi
"$program" "${arguments[@]}"
