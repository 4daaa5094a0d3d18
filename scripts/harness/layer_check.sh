#!/usr/bin/env bash
# The compiled layers on NEON, in an emulator, and on this machine's AVX2, beside double precision.
# Debian: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
set -euo pipefail
cd "$(dirname "$0")/../.."
out=runs/layer_check
mkdir -p "$out"
compile() { # COMPILER NAME LANES: as setup.py compiles, and statically
    "$1" -O3 -fno-math-errno -fno-trapping-math -static -DLAYER="$2_layer" -DLANES="$3" \
        -c scripts/harness/layer_check.c -o "$out/$2_check.o"
    "$1" -O3 -fno-math-errno -fno-trapping-math -c "spacy_elmo/kernels/inference/$2.c" -o "$out/$2.o"
    "$1" -static "$out/$2_check.o" "$out/$2.o" -lm -o "$out/$2"
}
compile aarch64-linux-gnu-gcc neon 4
echo "NEON: $(qemu-aarch64 "$out/neon")"
if grep -q avx2 /proc/cpuinfo; then
    compile gcc avx2 8
    echo "AVX2: $("$out/avx2")"
fi
