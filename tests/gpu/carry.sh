#!/usr/bin/env bash
# Makes DIR and DIR.tar.gz, the programs that tests/gpu/run.sh --prebuilt needs, for a GPU machine without our
# dependencies: its shared libraries beside them, all but those of the C library and the driver.
#
#   tests/gpu/carry.sh DIR [BUILD]
#
# Builds in build/carry, code for the architecture AERIE_GPU_ARCHITECTURE alone (90a). BUILD: a finished build with tests and
# CUDA, which is taken as it is. JOBS: how many compilers at once (2). CUOBJDUMP: the toolkit's disassembler, if it is not on the PATH.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -ge 1 ] && [ $# -le 2 ] || { echo "usage: tests/gpu/carry.sh DIR [BUILD]" >&2; exit 2; }
if [ -n "$(ls -A "$1" 2>/dev/null)" ] && [ ! -x "$1/bin/gpu_tests" ]; then echo "$1: holds something else" >&2; exit 2; fi
rm -rf "${1:?}/bin" "${1:?}/lib"
mkdir -p "$1/bin" "$1/lib/aerie/drafters" "$1/lib/standard"
to=$(cd "$1" && pwd)
if [ $# -eq 2 ]; then
  build=$(cd "$2" && pwd)
else
  build=$root/build/carry
  cd "$root"
  cmake --preset tests -B "$build" -DAERIE_STATIC=OFF -DAERIE_CUDA=ON -DAERIE_CUDA_ARCHITECTURES="${AERIE_GPU_ARCHITECTURE:-90a}" >/dev/null
  cmake --build "$build" --target gpu_tests gpu_bench gpu_report inflate aerie-cli aerie-cuda runtime -- -j"${JOBS:-2}"
fi
cp -f "$build"/bin/{gpu_tests,gpu_bench,gpu_report,inflate,aerie} "$to/bin/"
for library in libaerie libaerie-text; do  # by the name that programs ask for; the others are links to the same file
  name=$(objdump -p "$build/lib/$library.so" | awk '$1 == "SONAME" { print $2 }')
  cp -fL "$build/lib/$name" "$to/lib/"
done
cp -f "$build/lib/aerie/libaerie-cuda.so" "$to/lib/aerie/"
cp -f "$build"/lib/aerie/drafters/*.so "$to/lib/aerie/drafters/"
# ptxas of CUDA 13.0 can make copies with a cache policy that no GPU takes (linear_tile.h); only a disassembler tells: the
# toolkit's, or that which PyTorch brings along.
disassembler=${CUOBJDUMP:-$(command -v cuobjdump || python3 -c 'import triton; print(triton.__path__[0] + "/backends/nvidia/bin/cuobjdump")' 2>/dev/null || true)}
[ -x "$disassembler" ] || { echo "no cuobjdump, which tells whether the GPU takes what ptxas made: name one in CUOBJDUMP" >&2; exit 1; }
copies=$("$disassembler" -sass "$to/lib/aerie/libaerie-cuda.so" | grep LDGSTS) || { echo "$disassembler shows no copies at all" >&2; exit 1; }
if grep -E "\+UR[0-9]+.*desc\[UR" <<<"$copies" >&2; then
  echo "libaerie-cuda.so: copies that are illegal instructions" >&2; exit 1
fi
strip --strip-debug "$to"/bin/* "$to"/lib/*.so* "$to"/lib/aerie/*.so "$to"/lib/aerie/drafters/*.so
for file in "$to"/bin/* "$to"/lib/*.so*; do
  ldd "$file" | awk '$3 ~ /^\// { print $3 }'
done | sort -u | while read -r library; do
  case $(basename "$library") in
    libaerie*|ld-linux*|libc.so*|libm.so*|libpthread*|libdl.so*|librt.so*|libcuda.so*) ;;
    # The compiler's may ask for a newer C library than the other machine has: for one that has none, or older ones.
    libstdc++*|libgcc_s*) cp -fL "$library" "$to/lib/standard/" ;;
    *) cp -fL "$library" "$to/lib/" ;;
  esac
done
tar czf "$to.tar.gz" -C "$to" bin lib
du -sh "$to" "$to.tar.gz"
