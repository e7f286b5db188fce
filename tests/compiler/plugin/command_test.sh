#!/usr/bin/env bash
# The commands with plugins that are right and wrong. Arguments: tenon, tenon-run, the plugin relus.so.
set -euo pipefail
tenon=$1 run=$2 plugin=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/model.tn" <<'TN'
#[version = "1"]

def @main(%x: Tensor[(2, 3), f32]) -> Tensor[(2, 3), f32] { multiply(relu(%x * %x), 0.5f32) }
TN
perl -e 'my $h = "{\x27descr\x27: \x27<f4\x27, \x27fortran_order\x27: False, \x27shape\x27: (2, 3), }";
  $h .= " " x (117 - length $h) . "\n"; print "\x93NUMPY\x01\x00", pack("v", length $h), $h, pack("f<*", -2 .. 3)' >"$scratch/x.npy"
fails() {  # CODE TEXT COMMAND...: the command ends with this exit code and prints the text
  local code=$1 text=$2 found=0
  shift 2
  "$@" >"$scratch/said" 2>&1 || found=$?
  if [ "$found" != "$code" ] || ! grep -qF -- "$text" "$scratch/said"; then
    printf 'exit code %s, must be %s with "%s": %s\n' "$found" "$code" "$text" "$*"
    cat "$scratch/said"
    exit 1
  fi
}
same_bits() {  # OPTIONS: the model with these options computes what the CPU alone does
  "$tenon" run "$scratch/model.tn" --cpu --input "$scratch/x.npy" --output "$scratch/found.npy" "$@" >"$scratch/said" 2>&1 ||
    { cat "$scratch/said"; exit 1; }
  cmp "$scratch/found.npy" "$scratch/wanted.npy"
}
"$tenon" run "$scratch/model.tn" --cpu --input "$scratch/x.npy" --output "$scratch/wanted.npy" >/dev/null
same_bits --plugin "$plugin"

# The executable has the calls, and runs with the kernels alone.
"$tenon" compile "$scratch/model.tn" --cpu --plugin "$plugin" -o "$scratch/model.tnx" --explain >"$scratch/said"
grep -qE 'relu +relus +relus.relu' "$scratch/said"
TENON_TEST_PLUGIN=NULL "$run" "$scratch/model.tnx" --plugin "$plugin" --input "$scratch/x.npy" --output "$scratch/dir" >/dev/null
cmp "$scratch/wanted.npy" "$scratch"/dir/*.npy
fails 1 "the library of kernels 'relus' is not installed" "$run" "$scratch/model.tnx" --input "$scratch/x.npy"
fails 1 "cannot be the name of a library of kernels" "$run" "$scratch/model.tnx" --plugin "$scratch/x.npy" --input "$scratch/x.npy"

# What each operator costs on each target, in JSON.
cat >"$scratch/costs.json" <<'JSON'
{"version": 1, "cpu": {"gmacs_f32": 1, "gmacs_i8": 1, "gbytes": 1, "call_ns": 1000}, "devices": {"relus": {"launch_ns": 10}}}
JSON
"$tenon" compile "$scratch/model.tn" --cpu --plugin "$plugin" --costs "$scratch/costs.json" -o "$scratch/costs.tnx" --json |
  perl -MJSON::PP -0777 -e 'my $out = decode_json(<STDIN>); my ($relu) = grep { $_->{op} eq "relu" } @{$out->{operators}};
    die "no price" unless $relu->{target} eq "relus" && abs($relu->{prices}{relus}{seconds} - 1e-9) < 1e-12
      && $relu->{prices}{relus}{source} eq "cost of the plugin relus" && $relu->{prices}{cpu}{seconds} > 1e-6'

# Targets by name: the plugin is one of them.
fails 2 "dnnl, relus, cpu" \
  "$tenon" compile "$scratch/model.tn" --cpu --plugin "$plugin" --targets none -o "$scratch/none.tnx"
same_bits --plugin "$plugin" --targets relus,cpu
fails 2 "two targets are called 'relus'" \
  "$tenon" compile "$scratch/model.tn" --cpu --plugin "$plugin" --plugin "$plugin" -o "$scratch/none.tnx"

# A plugin that fails ends the compilation, or is left out.
for behavior in "crash in accepts" "exit in accepts" "throw in accepts" "wait in accepts" "NULL in compile" "newer version" "NULL" "everything"; do
  export TENON_TEST_PLUGIN=$behavior
  fails 1 "relus.so: error: the plugin " "$tenon" compile "$scratch/model.tn" --cpu --plugin "$plugin" --plugin-seconds 0.3 -o "$scratch/none.tnx"
  "$tenon" compile "$scratch/model.tn" --cpu --plugin "$plugin" --plugin-seconds 0.3 --fallback interpreter -o "$scratch/left.tnx" >/dev/null 2>"$scratch/said"
  grep -q 'the model is compiled without ' "$scratch/said"
  same_bits --plugin "$plugin" --plugin-seconds 0.3 --fallback interpreter
done
TENON_TEST_PLUGIN="NULL" same_bits --plugin "$plugin" --fallback interpreter --targets relus,cpu
unset TENON_TEST_PLUGIN

# So is a second file of one name.
mkdir "$scratch/second"
cp "$plugin" "$scratch/second"
two_files=("$tenon" compile "$scratch/model.tn" --cpu --plugin "$plugin" --plugin "$scratch/second/relus.so" -o "$scratch/two.tnx")
fails 1 "is a library of kernels 'relus' too" "${two_files[@]}"
fails 0 "second/relus.so: error: " "${two_files[@]}" --fallback interpreter

# So is one whose kernels fail: the first sample finds out.
printf '#[version = "1"]\n\ndef @main(%%x: Tensor[(1, 3), f32]) { relu(%%x * %%x - 1f32) }\n' >"$scratch/rows.tn"
over_rows=("$tenon" run "$scratch/rows.tn" --cpu --data "$scratch/x.npy" --quiet)
"${over_rows[@]}" --output "$scratch/rows.npz" >/dev/null
"${over_rows[@]}" --plugin "$plugin" --fallback interpreter --output "$scratch/found.npz" >/dev/null
cmp "$scratch/rows.npz" "$scratch/found.npz"
for wrong in "wrong size:result 0 of the kernel relus.run is f32 (2, 3)" "wrong type:result 0 of the kernel relus.run is i32" \
  "crash in the kernel:the kernel relus.run crashed by signal 11" "wait in the kernel:the kernel relus.run did not return within 2 s" \
  "fail in the kernel:the kernel relus.run: "; do
  export TENON_TEST_PLUGIN=${wrong%%:*}
  limit=()
  [ "$TENON_TEST_PLUGIN" != "wait in the kernel" ] || limit=(--plugin-seconds 2)
  rm "$scratch/found.npz"
  "$tenon" run "$scratch/rows.tn" --cpu --data "$scratch/x.npy" --plugin "$plugin" "${limit[@]}" --targets relus,cpu --fallback interpreter \
    --output "$scratch/found.npz" >/dev/null 2>"$scratch/said" || { cat "$scratch/said"; exit 1; }
  grep -qxF "the model is compiled without a plugin" "$scratch/said" || { cat "$scratch/said"; exit 1; }
  grep -qF "relus.so: error: ${wrong#*:}" "$scratch/said" || { cat "$scratch/said"; exit 1; }
  cmp "$scratch/rows.npz" "$scratch/found.npz"
done
unset TENON_TEST_PLUGIN
# Others stay, and so do the errors of the model.
cp "$plugin" "$scratch/others.so"
TENON_TEST_PLUGIN="crash in the kernel of others" "$tenon" run "$scratch/rows.tn" --cpu --data "$scratch/x.npy" --verbose \
  --plugin "$scratch/others.so" --plugin "$plugin" --fallback interpreter --output "$scratch/others.npz" >"$scratch/said" 2>&1
grep -qF "others.so: error: the kernel others.run crashed by signal 11" "$scratch/said" || { cat "$scratch/said"; exit 1; }
grep -qE 'relu +relus +relus.relu' "$scratch/said" || { cat "$scratch/said"; exit 1; }
! grep -qF "relus.so: error" "$scratch/said" || { cat "$scratch/said"; exit 1; }
cmp "$scratch/rows.npz" "$scratch/others.npz"
printf '#[version = "1"]\n\ndef @main(%%x: Tensor[(1, 3), f32]) { gather(relu(%%x), cast(max(%%x, axes=[0, 1]), dtype="i64") + 9i64, axis=1) }\n' \
  >"$scratch/wrong.tn"
fails 1 "error: the index 9 is not in 0 .. 2" "$tenon" run "$scratch/wrong.tn" --cpu --data "$scratch/x.npy" --plugin "$plugin" --fallback interpreter
! grep -q "without a plugin" "$scratch/said" || { cat "$scratch/said"; exit 1; }
TENON_TEST_PLUGIN="wrong size" fails 1 "result 0 of the kernel relus.run is" "${over_rows[@]}" --plugin "$plugin"

"$tenon" plugin check "$plugin" --samples 5 >"$scratch/said"
grep -qE '^relus.scale +5 samples, equal to the interpreter  multiply\(' "$scratch/said"
TENON_TEST_PLUGIN="wrong value" fails 1 "element 2 of the result is" "$tenon" plugin check "$plugin"
TENON_TEST_PLUGIN="refuse all" fails 1 "2 of 2 rows of relus have no samples" "$tenon" plugin check "$plugin" --samples 1
fails 1 "the plugin is not used: it cannot be opened" "$tenon" plugin check "$scratch/x.npy"
