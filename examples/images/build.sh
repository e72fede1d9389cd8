set -e
mkdir -p build
clang --target=wasm32 -Os -mbulk-memory -ffreestanding -nostdlib -Wl,--no-entry,--strip-all,--stack-first \
  -I../../guests/c -o build/images.wasm src/images.c
