#!/usr/bin/env bash
# The Rust crates: style, lints, tests linked and loaded, docs without a warning, packages that build away from here; the
# page's code; the drafter in Rust. Ends with status 77 where there is no cargo.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
command -v cargo >/dev/null || { echo "no cargo here"; exit 77; }
export AERIE_DIR=$build AERIE_MODELS=$root/samples/models CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=$root/build/rust
export LD_LIBRARY_PATH=$build/lib RUST_BACKTRACE=0 RUSTFLAGS=-Dwarnings RUSTDOCFLAGS=-Dwarnings
cargo() { command cargo --quiet "$@"; }

cd "$root/bindings/rust"
if cargo fmt --version >/dev/null 2>&1; then
  cargo fmt --all --check
  (cd "$root/samples/drafter-rust" && cargo fmt --check)
fi
if cargo clippy --version >/dev/null 2>&1; then
  cargo clippy --all-targets
  cargo clippy --all-targets --features load
  (cd aerie-sys && cargo clippy --no-default-features)
fi
cargo test
cargo test -p aerie --no-default-features --features load
cargo build  # for the page, below
cargo doc --no-deps
# Crates that need each other are packaged together since cargo 1.90. Away from the user's cache, which would keep the
# first aerie-sys 0.1.0 that it saw.
if [ "$(command cargo --version | sed -E 's/cargo 1\.([0-9]+).*/\1/')" -ge 90 ]; then
  away=$(mktemp -d)
  trap 'rm -rf "$away"' EXIT
  CARGO_HOME=$away/home command cargo package --workspace --allow-dirty --target-dir "$away/target" >"$CARGO_TARGET_DIR/package.log" 2>&1 || { cat "$CARGO_TARGET_DIR/package.log"; exit 1; }
  if grep '^warning' "$CARGO_TARGET_DIR/package.log"; then exit 1; fi
else
  cargo package -p aerie-sys --allow-dirty
fi

# The page: a block without a main stands in the middle of a program with a model and a session.
python3 - "$root/docs/rust.md" "$CARGO_TARGET_DIR/page.md" <<'EOF'
import pathlib, re, sys
before = """# use aerie::*;
# fn main() -> Result<()> {
# let models = std::env::var("AERIE_MODELS").unwrap();
# let model = Runtime::new()?.open_model(format!("{models}/demo.aerie"), ModelOptions::default())?;
# let mut session = model.session(&SessionOptions { ignore_eos: true, ..Default::default() })?;
# session.append(&[260, 513, 1021])?;
"""
page, out = map(pathlib.Path, sys.argv[1:])
whole = lambda code: code if "fn main" in code else before + code + "# Ok(()) }\n"
out.write_text(re.sub(r"```rust\n(.*?)```", lambda m: f"```rust\n{whole(m[1])}```", page.read_text(), flags=re.S))
EOF
rustdoc --test --edition 2021 "$CARGO_TARGET_DIR/page.md" --extern "aerie=$CARGO_TARGET_DIR/debug/libaerie.rlib" \
  -L "dependency=$CARGO_TARGET_DIR/debug/deps" -L "native=$build/lib" >"$CARGO_TARGET_DIR/page.log" 2>&1 ||
  { cat "$CARGO_TARGET_DIR/page.log"; exit 1; }

# It includes one header's worth of types, exports one symbol and passes the check, with and without a model.
cd "$root/samples/drafter-rust"
cargo test
cargo build --release
plugin=$CARGO_TARGET_DIR/release/libdrafter_rust.so
[ "$(nm -D --defined-only "$plugin" | awk '{print $NF}')" = aerie_drafter_plugin_entry ]
if readelf -d "$plugin" | grep NEEDED | grep aerie; then exit 1; fi
"$build/bin/aerie" plugin check "$plugin" --model "$root/samples/models/demo.aerie" >"$CARGO_TARGET_DIR/check.log"
if grep -vE '^ok ' "$CARGO_TARGET_DIR/check.log"; then exit 1; fi
