# Everything that people and CI run. `make help` lists it.
PYTHON := python3.11
ENV := .envs/oracle/bin
UV := .envs/tools/bin/uv
ENVIRONMENTS := oracle comfy-0.30.0 comfy-0.16.3
# Servers and tests import much, many times: compiled once, it takes half the time. Some machines turn that off.
export PYTHONDONTWRITEBYTECODE :=
RUST := $(shell git ls-files -co --exclude-standard rust architectures) Cargo.toml Cargo.lock pyproject.toml

.PHONY: help demo test test-rust build-tests test-python stress check-arm check-windows check-macos asan fuzz lint format bench build envs wheel wheel-manylinux archive clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

demo: .envs/.wheel ## compress a Flux-shaped checkpoint in a real ComfyUI and show how to use the result
	$(ENV)/python scripts/demo.py

test: envs ## run every test
	$(MAKE) test-rust
	$(MAKE) test-python

test-rust: ## run the tests of the Rust crates
	if cargo nextest --version >/dev/null 2>&1; then cargo nextest run; else cargo test; fi

build-tests: ## compile the tests of the Rust crates
	cargo test --no-run

test-python: build wheel-manylinux ## run the Python tests: nodes, official encoder, real servers, a real browser
	scripts/envs/chromium.sh
	$(ENV)/pytest tests -n 2 --dist loadgroup --no-loadscope-reorder

stress: build ## kills, faults, full disks and stops at random moments, for less than an hour; STRESS_SEED=N repeats a run
	STRESS_FULL=1 $(ENV)/pytest tests/stress -s --timeout 3000

check-arm: ## run the codec's tests as 64-bit ARM code, emulated; SKIP where that cannot be had
	scripts/check_arm.sh

check-windows: ## type-check everything for Windows; SKIP where that cannot be had
	scripts/check_foreign.sh x86_64-pc-windows-gnu

check-macos: ## type-check everything for macOS, both processors; SKIP likewise
	scripts/check_foreign.sh aarch64-apple-darwin x86_64-apple-darwin

asan: ## run the tests of the kernels with the address sanitizer
	scripts/asan.sh

fuzz: ## run each fuzz target for FUZZ_SECONDS (60)
	scripts/fuzz.sh

lint: envs .envs/.wheel ## formatters, linters, type checks
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(ENV)/ruff check .
	$(ENV)/ruff format --check .
	$(ENV)/mypy
	MYPYPATH=rust/df11-py $(ENV)/python -m mypy.stubtest df11_native --allowlist rust/df11-py/stubtest-allow.txt

format: ## format everything
	cargo fmt
	$(ENV)/ruff check --fix .
	$(ENV)/ruff format .

bench: build .envs/bench/.ready ## measure the code stage by stage, then beside other programs and copying (15 minutes)
	cargo build --release -p df11-file --examples
	cargo bench -p df11-codec --bench stages
	$(ENV)/python scripts/bench.py $(BENCH)

build: envs .envs/.wheel ## the df11 command, the native module in every environment, and what tests need
	# With df11-py, so that what the wheel was made of is not compiled once more with other features.
	cargo build --release -p df11-cli -p df11-py -p fake-cuda
	# An example that tests run, as `cargo test` builds it.
	cargo build --examples

envs: ## the Python environments, locked
	$(PYTHON) scripts/envs/setup.py

wheel: .envs/.wheel ## the wheel, in dist/

wheel-manylinux: dist/release/.ready ## what is published of wheels and can be made here, in dist/release/: for Linux x86_64, and the one without native code

archive: ## the registry's archive, in dist/release/
	$(PYTHON) scripts/release/archive.py dist/release/node.zip

.envs/%/.ready: scripts/envs/locks/%.txt
	$(PYTHON) scripts/envs/setup.py $*

.envs/.wheel: $(RUST) $(ENVIRONMENTS:%=.envs/%/.ready)
	rm -f dist/*.whl
	$(ENV)/maturin build --release --locked --out dist --interpreter $(ENV)/python
	for env in $(ENVIRONMENTS:%=.envs/%); do \
		$(UV) pip install -q --no-deps --reinstall --python $$env/bin/python dist/*.whl || exit 1; \
	done
	touch $@

dist/release/.ready: $(RUST) README.md LICENSE $(wildcard scripts/release/fallback*.py) .envs/release/.ready
	rm -rf dist/release
	PATH="$(CURDIR)/.envs/release/bin:$$PATH" maturin build --release --locked --zig --compatibility manylinux2014 --out dist/release
	$(PYTHON) scripts/release/fallback_wheel.py dist/release
	touch $@

clean: ## remove what was built
	rm -rf target dist .envs
