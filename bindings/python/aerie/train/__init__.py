"""Training for Aerie: a small Llama target and drafters of every kind for it, on a CPU in an evening.

    corpus -> tokenizer -> stream -> target -> generate -> eagle, fasteagle, ... -> evaluate

Each step is a module with a command line (`python3 -m aerie.train.<step> --help`);
`python3 -m aerie.train.demo` runs them all. Nothing here is needed to run a model.
"""

import os

# OpenMP threads that spin at barriers slow each other tenfold when anything else runs on the machine.
# Must be set before PyTorch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
