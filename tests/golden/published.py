#!/usr/bin/env python3
"""published.py BUILD: SmolLM2-135M-Instruct beside transformers, by hand (needs torch, transformers, accelerate and gguf).

Converted to f32, its logits over a text are compared with transformers' of the same GGUF file. The text is drawn by transformers.
BUILD keeps the model (samples/smollm2/model.sh fetches it).
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

made = subprocess.run([ROOT / "samples/smollm2/model.sh", BUILD, "f32"], check=True, stdout=subprocess.PIPE, text=True)
file = next((BUILD / "smollm2").glob("*.gguf"))
model = aerie.Model(made.stdout.strip())
prompt = model.tokenizer.encode("<|im_start|>user\nWhat is a lighthouse for?<|im_end|>\n<|im_start|>assistant\n", bos=False, special=True)
theirs = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()
with torch.no_grad():
    text = theirs.generate(torch.tensor([prompt]), max_new_tokens=200, do_sample=True)[0]
    logits = theirs(text[None]).logits[0].numpy()
features = np.asarray(model.features(text.tolist(), taps=(-1,))).reshape(len(text), -1)
ours = features @ theirs.get_input_embeddings().weight.detach().numpy().T
apart = np.linalg.norm(ours - logits) / np.linalg.norm(logits)
same = (ours.argmax(-1) == logits.argmax(-1)).mean()
print(f"{len(text)} tokens: relative difference of the logits {apart:.1e}, same best token at {100 * same:.1f} % of them")
sys.exit(int(apart > 1e-4))
