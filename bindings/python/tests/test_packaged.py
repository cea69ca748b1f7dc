"""Features by the runtime are those of the PyTorch twin. Needs a built Aerie in AERIE_DIR."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import torch

from aerie.train import hf, packaged
from aerie.train.model import Llama, LlamaConfig, initialise

TOKENIZER = Path(__file__).resolve().parents[3] / "tests" / "golden" / "text" / "gpt2" / "tokenizer.json"


@unittest.skipUnless("AERIE_DIR" in os.environ, "no AERIE_DIR")
class Packaged(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder, self.package = Path(scratch.name) / "target", Path(scratch.name) / "target.aerie"
        self.twin = Llama(LlamaConfig(vocab_size=96, hidden_size=32, intermediate_size=64, num_attention_heads=2, head_dim=16,
                                      num_hidden_layers=3, num_key_value_heads=1))
        initialise(self.twin, 0)
        for parameter in self.twin.parameters():
            if parameter.ndim == 2:
                torch.nn.init.normal_(parameter, std=0.3)
        self.twin.eval()
        hf.save(self.twin, TOKENIZER, self.folder)
        (self.folder / "tokenizer.json").unlink()
        subprocess.run([Path(os.environ["AERIE_DIR"]) / "bin" / "aerie", "convert", self.folder, "-o", self.package,
                        "--dtype", "f32"], check=True, capture_output=True)

    @torch.no_grad()
    def test_features_and_taps_are_the_twins(self):
        tokens = torch.randint(0, 96, (2, 70), generator=torch.Generator().manual_seed(1))
        target = packaged.load(self.folder, str(self.package))
        ours, theirs = [], []
        torch.testing.assert_close(target.features(tokens, taps=ours), self.twin.features(tokens, taps=theirs), rtol=0, atol=1e-4)
        self.assertEqual(len(ours), 3)
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-3)
        torch.testing.assert_close(target.logits(target.features(tokens)), self.twin(tokens), rtol=0, atol=1e-3)

    def test_another_model_is_refused(self):
        other = Llama(LlamaConfig(vocab_size=96, hidden_size=32, intermediate_size=64, num_attention_heads=2, head_dim=16,
                                  num_hidden_layers=2, num_key_value_heads=1))
        with self.assertRaises(ValueError):
            packaged.PackagedLlama(other, self.package)


if __name__ == "__main__":
    unittest.main()
