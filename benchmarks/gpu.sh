#!/usr/bin/env bash
# What a GPU shows, in twelve minutes at most: the tests of the device, then training and decoding of the original
# Transformer's base model (benchmarks/gpu.py), and their section of docs/performance.md.
#
#   benchmarks/gpu.sh                     # with .venv/bin/python; PYTHON=.. names another one
#
# Needs a CUDA build of torch, and transformers for the comparison. What is not there is said, and the rest runs.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
failed=0
timeout 120 "$python" -m pytest -q -p no:cacheprovider tests/runtime/test_devices.py tests/attention/test_sparse.py || failed=1
timeout 590 "$python" benchmarks/gpu.py "$@" || failed=1
timeout 10 "$python" benchmarks/speed_report.py || failed=1
exit "$failed"
