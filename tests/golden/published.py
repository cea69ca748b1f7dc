#!/usr/bin/env python3
"""published.py BUILD [NAME]: SmolLM2-135M-Instruct, or gemma3 (270M) or qwen_coder (1.5B), beside transformers, by hand (needs torch,
transformers, accelerate and gguf; qwen_coder 16 GB of memory).

Converted to f32, its logits over a text are compared with transformers' of the same GGUF file. The text is drawn by transformers.
BUILD keeps the model (samples/published/model.sh fetches it).
"""

import os
import subprocess
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv[1]).resolve()
os.environ.setdefault("AERIE_DIR", str(BUILD))
sys.path.insert(0, str(ROOT / "bindings/python"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402

import aerie  # noqa: E402

NAME = sys.argv[2] if len(sys.argv) > 2 else "smollm2"
CHAT = "<|im_start|>user\nWhat is a lighthouse for?<|im_end|>\n<|im_start|>assistant\n"
# Gemma 3 270M is no chat model; its text outgrows its windows of 512.
TEXT, TOKENS = ("The old lighthouse stood", 600) if NAME == "gemma3" else (CHAT, 200)
made = subprocess.run([ROOT / "samples/published/model.sh", NAME, BUILD, "f32"], check=True, stdout=subprocess.PIPE, text=True)
file = BUILD / "published" / NAME / f"{NAME}.gguf"
model = aerie.Model(made.stdout.strip())
prompt = model.tokenizer.encode(TEXT, bos=NAME == "gemma3", special=True)
theirs = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()
with torch.no_grad():
    text = theirs.generate(torch.tensor([prompt]), max_new_tokens=TOKENS, do_sample=True)[0]
    logits = theirs(text[None]).logits[0].numpy()
features = np.asarray(model.features(text.tolist(), taps=(-1,))).reshape(len(text), -1)
ours = features @ theirs.get_output_embeddings().weight.detach().numpy().T
apart = np.linalg.norm(ours - logits) / np.linalg.norm(logits)
same = (ours.argmax(-1) == logits.argmax(-1)).mean()
print(f"{len(text)} tokens: relative difference of the logits {apart:.1e}, same best token at {100 * same:.1f} % of them")
sys.exit(int(apart > 1e-4))
