"""Features by the runtime are those of the PyTorch twin. Needs a built Aerie in AERIE_DIR."""

import json
import os
import subprocess
import tempfile
import types
import unittest
from pathlib import Path

import aerie
import torch

from aerie.train import hf, packaged, unpack, unpack_head
from aerie.train.heads import dflash, eagle, eagle3, fasteagle, hydra, medusa
from aerie.train.model import Llama, LlamaConfig, initialise
from aerie.train.package_file import Package

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
        self.convert("--dtype", "f32")

    def convert(self, *options):
        subprocess.run([Path(os.environ["AERIE_DIR"]) / "bin" / "aerie", "convert", self.folder, "-o", self.package, *options],
                       check=True, capture_output=True)

    def inspected(self, folder):
        self.folder = folder
        self.convert("--dtype", "f32")
        said = json.loads(subprocess.run([Path(os.environ["AERIE_DIR"]) / "bin" / "aerie", "inspect", self.package, "--json"],
                                         check=True, capture_output=True).stdout)
        return said["fingerprint"], said["config"]

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

    @torch.no_grad()
    def test_features_of_a_text_that_comes_again_are_kept(self):
        tokens = torch.randint(0, 96, (2, 70), generator=torch.Generator().manual_seed(1))
        target, asked = packaged.load(self.folder, str(self.package), keep=True), []
        read = target.package.features
        target.package = types.SimpleNamespace(features=lambda *args, **named: (asked.append(1), read(*args, **named)))
        first, again = [], []
        features = target.features(tokens, taps=first)
        torch.testing.assert_close(target.features(tokens, taps=again), features, rtol=1 / 128, atol=0)
        torch.testing.assert_close(torch.stack(again), torch.stack(first), rtol=1 / 128, atol=0)
        self.assertEqual(len(asked), 2)

    def test_unpacked_weights_are_the_twins(self):
        # What a value may be off by: half a step of its row's or block's scale; of a rounding for floating point.
        row = lambda w: w.abs().amax(-1, keepdim=True)
        block = lambda w: w.view(-1, 32).abs().amax(-1, keepdim=True).expand(-1, 32).reshape(w.shape)
        allowed = {"f32": lambda w: 0 * w, "bf16": lambda w: w.abs() / 256, "int8": lambda w: row(w) / 253,
                   "int4": lambda w: block(w) / 7, "q4_1": lambda w: block(w) / 7, "mxfp4": lambda w: w.abs() / 4 + block(w) / 16,
                   "fp8": lambda w: w.abs() / 15.9 + row(w) / 448 / 1000}
        for dtype, off in allowed.items():
            with self.subTest(dtype=dtype):
                self.convert("--dtype", dtype, *(["--compress"] if dtype == "int8" else []))
                state = unpack.twin(self.package).state_dict()
                self.assertEqual(state.keys(), self.twin.state_dict().keys())
                for name, w in self.twin.state_dict().items():
                    limit = off(w) if w.ndim == 2 else 0 * w
                    self.assertTrue(((state[name] - w).abs() <= limit + 1e-7 * w.abs()).all(), name)

    def test_weights_that_were_four_bits_come_back_as_they_were(self):
        for parameter in self.twin.parameters():
            if parameter.ndim == 2:  # a scale and a minimum of halves for 32 weights
                scale, least = (torch.rand(parameter.numel() // 32, 1).add(0.1).half().float() for _ in range(2))
                codes = torch.randint(0, 16, (parameter.numel() // 32, 32))
                codes[:, 0], codes[:, 1] = 0, 15
                parameter.data = (codes * scale - least).view(parameter.shape)
        hf.save(self.twin, None, self.folder)
        for dtype in ("q4_1", "stored"):  # the latter is f32
            with self.subTest(dtype=dtype):
                self.convert("--dtype", dtype)
                state = unpack.twin(self.package).state_dict()
                for name, w in self.twin.state_dict().items():
                    self.assertTrue(torch.equal(state[name], w), name)

    def test_unpacks_to_a_folder_that_converts_to_the_same_model(self):
        out = self.folder.with_name("again")
        config = self.folder / "config.json"
        said = json.loads(config.read_text())
        for changed in ({}, {"bos_token_id": 5, "eos_token_id": [7, 9], "aerie_tap_layers": [0, 2]}, {"eos_token_id": None}):
            with self.subTest(changed):
                config.write_text(json.dumps(said | changed))
                before = self.inspected(config.parent)
                hf.save(unpack.twin(self.package), None, out, settings=unpack.settings(self.package))
                self.assertEqual(self.inspected(out), before)

    def test_unpacked_heads_convert_to_the_same_packages(self):
        torch.manual_seed(2)
        shape = dict(hidden_size=32, intermediate_size=64, num_attention_heads=2, num_key_value_heads=1, head_dim=16, vocab_size=96)
        narrow = eagle3.Eagle3Head(eagle3.Eagle3Config(draft_vocab_size=40, **shape, eagle_aux_hidden_state_layer_ids=[0, 1, 2]))
        narrow.set_vocabulary(torch.arange(3, 83, 2))
        made = {
            "eagle": (eagle, eagle.EagleHead(eagle.HeadConfig(**shape, bias=True, qkv_bias=True))), "eagle3": (eagle3, narrow),
            "fasteagle": (fasteagle, fasteagle.FastEagle(fasteagle.FastEagleConfig(
                num_hidden_layers=3, draft_top_k=5, rope_theta=777.0, **shape, eagle_aux_hidden_state_layer_ids=[0, 2, 1]))),
            "dflash": (dflash, dflash.DFlash(dflash.DFlashConfig(
                num_hidden_layers=2, block_size=5, mask_token_id=7, target_layer_ids=[2, 0], num_target_layers=None, rope_theta=777.0, **shape))),
            "medusa": (medusa, medusa.MedusaHead(32, 3, 96)), "hydra": (hydra, hydra.HydraHead(32, 3, 96))}
        for name, (kind, head) in made.items():
            for dtype in ("f32", "int8"):
                with self.subTest(head=name, dtype=dtype):
                    for parameter in head.parameters():
                        torch.nn.init.normal_(parameter, std=0.3)
                    folder, package = self.folder.with_name(name), self.folder.with_name(f"{name}.aerie")
                    again, repacked = self.folder.with_name(f"{name}-again"), self.folder.with_name(f"{name}-again.aerie")
                    kind.save(head, folder)
                    for source, out in ((folder, package), (again, repacked)):
                        if source == again:
                            unpack_head.save(Package(package), again)
                        subprocess.run([Path(os.environ["AERIE_DIR"]) / "bin" / "aerie", "convert", source, "-o", out, "--dtype", dtype,
                                        "--drafter-for", self.package], check=True, capture_output=True)
                    before, after = Package(package), Package(repacked)
                    self.assertEqual(unpack_head.params(before.drafter), unpack_head.params(after.drafter))
                    self.assertEqual(before.names(), after.names())
                    for tensor in before.names():
                        torch.testing.assert_close(after[tensor], before[tensor], rtol=1e-6, atol=0)

    def test_another_model_is_refused(self):
        other = Llama(LlamaConfig(vocab_size=96, hidden_size=32, intermediate_size=64, num_attention_heads=2, head_dim=16,
                                  num_hidden_layers=2, num_key_value_heads=1))
        with self.assertRaises(ValueError):
            packaged.PackagedLlama(other, self.package)


if __name__ == "__main__":
    unittest.main()
