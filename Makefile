# Every target installs what it needs into .venv, in the exact versions of constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
DEMO := outputs/demo

.PHONY: help demo benchmark test test-fast test-faults test-ecosystem test-engines test-lowest lint format clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

LAUNCH := $(BIN)/accelerate launch --num_processes 1 --num_machines 1 --mixed_precision no \
	--dynamo_backend no
demo: .venv/.installed  ## embed two sentences, convert weights both ways, train taggers, tag a sentence
	$(BIN)/python examples/embed_sentences.py
	$(BIN)/elmo-hf export --model bundled --output-dir $(DEMO)/hdf5 --overwrite
	$(BIN)/elmo-hf convert $(DEMO)/hdf5 --output-dir $(DEMO)/elmo --split english --overwrite
	$(BIN)/python examples/random_model.py --output_dir $(DEMO)/untrained --overwrite
	$(LAUNCH) examples/run_pos.py --model_name_or_path $(DEMO)/untrained \
		--output_dir $(DEMO)/tagger-on-an-untrained-biLM --overwrite_output_dir
	$(LAUNCH) examples/run_pos.py --model_name_or_path $(DEMO)/elmo --output_dir $(DEMO)/tagger \
		--overwrite_output_dir
	echo "Will you book the book? Don't!" | $(BIN)/elmo-hf tag --model $(DEMO)/tagger
	$(BIN)/python examples/tagging_table.py $(DEMO)/tagger-on-an-untrained-biLM $(DEMO)/tagger
	@echo "Open $(DEMO)/tagger/report.html"

.venv/.benchmark: .venv/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[onnx]'
	touch $@

# `make benchmark QUICK=1`; or `make benchmark TEXT=sentences.txt TRAIN=train.txt HELDOUT=valid.txt`; with
# RESULTS=benchmarks/results the figures of the repository are replaced.
RESULTS ?= outputs/benchmark$(if $(QUICK),-quick)
benchmark: .venv/.benchmark  ## compare speed and memory with AllenNLP and simple_elmo; QUICK=1 takes 15 minutes, all rows hours
	$(BIN)/python benchmarks/run.py --output $(RESULTS) $(if $(QUICK),--quick) \
		$(if $(TEXT),--text $(TEXT)) $(if $(TRAIN),--train $(TRAIN)) $(if $(HELDOUT),--heldout $(HELDOUT))

# Two processes of one thread each, since most of the time is spent in programs that the tests start.
IN_TWO := --numprocesses 2 --dist loadfile
test: .venv/.installed  ## download the reference material and run all tests
	$(BIN)/python tests/helpers/references.py
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(IN_TWO)

test-fast: .venv/.installed  ## run the tests that start no programs and train nothing
	$(BIN)/python tests/helpers/references.py
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m 'not program' --durations 10

# `make test-faults MINUTES=5 SEED=7`; another seed is another set of trials.
MINUTES ?= 20
SEED ?= 1
test-faults: .venv/.installed  ## damage inputs, kill commands, fill disks, race and share for MINUTES=20, with SEED=1
	$(BIN)/python tests/faults/campaign.py --minutes $(MINUTES) --seed $(SEED)

.venv/.ecosystem: .venv/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[ecosystem]'
	touch $@

test-ecosystem: .venv/.ecosystem  ## install gradio, onnxruntime, peft, spaCy and others, and run the tests that need them
	$(BIN)/python -m pytest -o addopts=--strict-markers tests/ecosystem

.venv/.engines: .venv/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[ray,spark]'
	touch $@

test-engines: .venv/.engines  ## install Ray and PySpark, and run the tests that need them and Java
	$(BIN)/python -m pytest -o addopts=--strict-markers tests/engines

# The oldest transformers that pyproject.toml allows, with the versions of its hub and tokenizers libraries.
LOWEST := $(shell sed -n 's/.*"transformers>=\([0-9.]*\).*/\1/p' pyproject.toml)
.venv-lowest/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-lowest
	grep -vE '^(transformers|huggingface[_-]hub|tokenizers)==' constraints.txt > .venv-lowest/constraints.txt
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check \
		--constraint .venv-lowest/constraints.txt --editable '.[dev]' transformers==$(LOWEST)
	touch $@

test-lowest: .venv-lowest/.installed  ## run all tests with the oldest supported transformers
	.venv-lowest/bin/python tests/helpers/references.py
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest $(IN_TWO)

lint: .venv/.installed  ## check style (ruff) and types (mypy)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.installed  ## fix and format the code with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove environments, caches and everything that was built
	rm -rf .venv .venv-lowest .cache build dist outputs *.egg-info
