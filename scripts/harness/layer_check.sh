#!/usr/bin/env bash
# The compiled layers on NEON, in an emulator, and on this machine's AVX2, beside double precision. Then the library that
# was built here on emulated processors without AVX-512.
# Debian: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
set -euo pipefail
cd "$(dirname "$0")/../.."
out=runs/layer_check
mkdir -p "$out"
compile() { # COMPILER NAME LANES: as setup.py compiles, and statically
    "$1" -O3 -fno-math-errno -fno-trapping-math -static -DLAYER="$2_layer" -DLANES="$3" \
        -c scripts/harness/layer_check.c -o "$out/$2_check.o"
    "$1" -O3 -fno-math-errno -fno-trapping-math -c spacy_elmo/kernels/scan.c -o "$out/$2.o"
    "$1" -static "$out/$2_check.o" "$out/$2.o" -lm -o "$out/$2"
}
compile aarch64-linux-gnu-gcc neon 4
echo "NEON: $(qemu-aarch64 "$out/neon")"
if grep -q avx2 /proc/cpuinfo; then
    compile gcc avx2 8
    echo "AVX2: $("$out/avx2")"
fi
library=$(echo "$PWD"/spacy_elmo/kernels/_loops*.so)
gcc -O2 -DLAYER=avx2_layer -DLANES=8 scripts/harness/layer_check.c "$library" -lm -o "$out/library"
echo "the library on Haswell (AVX2): $(qemu-x86_64 -cpu Haswell "$out/library" 2>/dev/null)"
open='import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); print([library.has_avx2(), library.has_avx512()])'
python=$(python3 -c 'import sys; print(sys.executable)')
echo "has AVX2, AVX-512 on Nehalem: $(qemu-x86_64 -cpu Nehalem "$python" -S -c "$open" "$library" 2>/dev/null)"
