"""Training for Aerie: a small Llama target and an EAGLE head for it, on a CPU in an evening.

    corpus -> tokenizer -> target -> eagle -> evaluate

Each step is a module with a command line (`python3 -m aerie.train.<step> --help`);
`python3 -m aerie.train.demo` runs them all. Nothing here is needed to run a model.
"""
