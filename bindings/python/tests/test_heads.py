"""Fast checks of the drafter heads and their trainers: python3 -m unittest discover -s tests"""

import dataclasses
import json
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch

from aerie.train import (dflash, draft, eagle3, evaluate, fasteagle, head_job, heads, hf, hydra, loop, medusa, rows, settings,
                         small_model, tree)
from aerie.train.heads import dflash as dflash_head
from aerie.train.heads import eagle as eagle_head
from aerie.train.heads import eagle3 as eagle3_head
from aerie.train.heads import fasteagle as fasteagle_head
from aerie.train.heads import files
from aerie.train.heads import hydra as hydra_head
from aerie.train.heads import medusa as medusa_head
from aerie.train.model import Llama, LlamaConfig, initialise

SIZES = dict(vocab_size=50, hidden_size=24, intermediate_size=32, num_attention_heads=3, head_dim=8)
TAPS = dict(num_key_value_heads=1, eagle_aux_hidden_state_layer_ids=[2, 3, 4])
RECIPES = {"medusa": medusa, "hydra": hydra, "fasteagle": fasteagle, "fasteagle-demo": fasteagle,
           "fasteagle-greedy": fasteagle, "eagle3": eagle3, "dflash": dflash, "small": small_model}


def random(module: torch.nn.Module, std: float = 0.2) -> torch.nn.Module:
    """The trainers' zeros and identities would hide mistakes."""
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=std) if parameter.ndim == 2 else parameter.data.add_(0.1)
    return module


def target() -> Llama:
    model = Llama(LlamaConfig(**SIZES, num_hidden_layers=7, num_key_value_heads=1))
    initialise(model, 0)
    return random(model, 0.3).eval().requires_grad_(False)


def new_heads() -> dict:
    torch.manual_seed(1)
    out = {
        "medusa": (medusa_head, medusa_head.MedusaHead(24, 3, 50)),
        "hydra": (hydra_head, hydra_head.HydraHead(24, 3, 50)),
        "fasteagle": (fasteagle_head, fasteagle_head.FastEagle(
            fasteagle_head.FastEagleConfig(**SIZES, **TAPS, num_hidden_layers=3))),
        "eagle3": (eagle3_head, eagle3_head.Eagle3Head(
            eagle3_head.Eagle3Config(**SIZES, **TAPS, draft_vocab_size=20), passes=3)),
        "dflash": (dflash_head, dflash_head.DFlash(dflash_head.DFlashConfig(
            **SIZES, num_key_value_heads=1, num_hidden_layers=2, block_size=4, target_layer_ids=[1, 2, 3], num_target_layers=7))),
        "eagle": (eagle_head, eagle_head.EagleHead(eagle_head.HeadConfig(**SIZES))),
    }
    for _, head in out.values():
        random(head)
    out["hydra"][1].set_scales(1.0, 0.3)
    out["fasteagle"][1].set_scales([2.0, 3.0, 4.0], 0.3)
    out["dflash"][1].set_scales([2.0, 3.0, 4.0])
    out["eagle3"][1].set_vocabulary(torch.arange(0, 40, 2))
    return out


def text(seed: int = 2, batch: int = 2) -> torch.Tensor:
    return torch.randint(0, 50, (batch, 14), generator=torch.Generator().manual_seed(seed))


class Heads(unittest.TestCase):
    def setUp(self):
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, True)
        self.target = target()

    def test_round_trip(self):
        tokens = rows.read(self.target, text())
        for name, (module, head) in new_heads().items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                module.save(head, Path(folder))
                loaded = heads.load(Path(folder))
                self.assertIs(type(loaded), type(head))
                self.assertEqual(set(files.tensors(loaded)), set(files.tensors(head)))
                if name == "eagle3":
                    loaded.passes = head.passes
                if name == "eagle":
                    continue
                before, after = head.levels(self.target, tokens), loaded.levels(self.target, tokens)
                for ours, theirs in zip(before, after, strict=True):
                    torch.testing.assert_close(ours, theirs)

    def test_missing_and_unexpected_tensors_are_errors(self):
        for name, (_, head) in new_heads().items():
            saved = files.tensors(head)
            with self.subTest(name), self.assertRaises(RuntimeError):
                files.put(head, {**saved, "other.weight": torch.zeros(2)})
            saved.popitem()
            with self.subTest(name), self.assertRaises(RuntimeError):
                files.put(head, saved)

    def test_keys_and_shapes(self):
        shapes = {name: {key: tuple(value.shape) for key, value in files.tensors(head).items()}
                  for name, (_, head) in new_heads().items()}
        self.assertEqual(shapes["medusa"]["2.0.linear.weight"], (24, 24))
        self.assertEqual(len(shapes["medusa"]), 6)
        self.assertEqual(shapes["hydra"]["hydra_mlp.2.0.res_connection.weight"], (24, 96))
        self.assertEqual(len(shapes["hydra"]), 12)
        self.assertEqual(shapes["fasteagle"]["fc.weight"], (24, 72))
        self.assertEqual(shapes["fasteagle"]["fc_in.weight"], (24, 48))
        self.assertEqual(len(shapes["fasteagle"]), 2 + 3 * 9)
        self.assertEqual(shapes["dflash"]["fc.weight"], (24, 72))
        self.assertEqual(shapes["dflash"]["layers.1.self_attn.k_norm.weight"], (8,))
        self.assertEqual(len(shapes["dflash"]), 3 + 2 * 11)
        self.assertEqual(shapes["eagle3"]["midlayer.self_attn.k_proj.weight"], (8, 48))
        self.assertEqual(shapes["eagle3"]["lm_head.weight"], (20, 24))
        self.assertEqual(len(shapes["eagle3"]), 15)

    def test_a_row_sees_nothing_to_come(self):
        """Changing the token at index 9 changes no state whose row and drafted path end before it."""
        one, other = text(), text()
        other[:, 9] = (other[:, 9] + 1) % 50
        for name, (_, head) in new_heads().items():
            if name == "eagle":
                continue
            levels = [head.levels(self.target, rows.read(self.target, tokens)) for tokens in (one, other)]
            for i, (before, after) in enumerate(zip(*levels)):
                # Row j reads t_{j+1}; Hydra's and EAGLE-3's level i the i tokens after it too.
                reach = 1 + (i if name in ("hydra", "eagle3") else 0)
                safe = 9 if name == "medusa" else 9 - reach
                with self.subTest(name, level=i):
                    torch.testing.assert_close(before[:, :safe], after[:, :safe])
                    self.assertFalse(torch.allclose(before[:, safe:], after[:, safe:]))

    def test_levels_are_what_drafting_does(self):
        """The drafter, given the text's own tokens as its path, says what `levels` says of that row."""
        tokens = text()
        read = rows.read(self.target, tokens)
        for name, (_, head) in new_heads().items():
            if name == "eagle":
                continue
            drafter, row = draft.drafter(self.target, head), 5
            drafter.prepare(read)
            state = drafter.begin(torch.full((2,), row + 1))[:, None]
            for i, states in enumerate(head.levels(self.target, read)):
                if i:
                    path = torch.ones(2, 1, i, dtype=torch.bool)
                    state = drafter.expand(tokens[:, row + 1 + i, None], state, i, path)
                with self.subTest(name, level=i):
                    torch.testing.assert_close(drafter.logits(state)[:, 0], head.logits(self.target, states[:, row]),
                                               atol=1e-4, rtol=1e-4)

    def test_trees(self):
        tokens = text(3, 3)
        for name, (_, head) in new_heads().items():
            drafter = draft.drafter(self.target, head)
            drafter.prepare(rows.read(self.target, tokens))
            for grow in (tree.grow, tree.backbone):
                options = (tree.TreePolicy("small", k=3, depth=4, keep=9),) if grow is tree.grow else (3, 3)
                grown = grow(drafter, torch.tensor([4, 5, 6]), lambda x, _: x.log_softmax(-1), *options)
                for parents, kept in zip(grown.parents.tolist(), grown.kept.tolist()):
                    self.assertEqual(sum(kept), 9)
                    self.assertTrue(all(p < 0 or kept[p] for p, k in zip(parents, kept) if k), name)

    def test_draft_vocabulary(self):
        head = new_heads()["eagle3"][1]
        self.assertEqual(head.vocabulary().tolist(), list(range(0, 40, 2)))
        self.assertEqual(head.t2d.nonzero().flatten().tolist(), list(range(0, 40, 2)))
        logits = head.logits(self.target, torch.randn(4, 24))
        self.assertEqual(torch.isfinite(logits).sum(-1).tolist(), [20] * 4)
        chosen = eagle3.frequent_tokens([np.array([5, 5, 7, 9, 9, 9])], [1.0], 12, 2)
        self.assertEqual(chosen.tolist(), [5, 9])


class Training(unittest.TestCase):
    def job(self, name: str, folder: Path):
        """The recipe on a tiny target and random text."""
        data = folder / "data"
        data.mkdir()
        random = np.random.default_rng(0)
        for stream in ("novels.train", "python.train", "novels.held", "python.held", "generated", "greedy"):
            (random.integers(0, 25, 4000) * 2).astype(np.uint16).tofile(data / f"{stream}.u16")
        (data / "tokenizer.json").write_text("{}")
        hf.save(target(), data / "tokenizer.json", folder / "target")
        small = {"eagle3": ["--draft-vocab-size", "30"]}.get(name, [])
        if name == "small":
            small = ["--hidden-size", "16", "--intermediate-size", "16", "--head-dim", "8"]
        elif name in ("eagle3", "fasteagle", "fasteagle-demo", "fasteagle-greedy", "dflash"):
            small += ["--head-dim", "8", "--intermediate-size", "32"]
        if name == "dflash":
            small += ["--whole-share", "0"]
        module = RECIPES[name]
        s = settings.parse(module.Settings, f"{name}.toml", "", [
            "--data", str(data), "--target", str(folder / "target"), "--work", str(folder / "work"),
            "--out", str(folder / "out"), "--sequence", "32", "--short-sequence", "32", "--rows", "4",
            "--steps", "30", "--warmup-steps", "2", "--decay-share", "0", "--no-compile", *small])
        job_class = next(value for key, value in vars(module).items() if key.endswith("Job") and key != "HeadJob")
        return s, job_class(s)

    def same(self, got: dict, want: dict):
        self.assertEqual(got.keys(), want.keys())
        for name, value in want.items():
            torch.testing.assert_close(got[name], value, msg=name)

    def test_one_step_lowers_the_loss_and_a_checkpoint_goes_on(self):
        for name in RECIPES:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                s, job = self.job(name, Path(folder))
                run = loop.Loop(s, job)
                batch = job.mixture.batch(4)

                def loss():
                    torch.manual_seed(0)  # the stretch with token losses
                    with torch.no_grad():
                        return job.losses(batch).item()

                before = loss()
                job.mixture.batch = lambda rows: batch
                torch.manual_seed(0)
                for _ in range(2):
                    run.train_step()
                self.assertLess(loss(), before)
                run.save()
                fresh = type(job)(s)
                again = loop.Loop(s, fresh)
                self.assertEqual(again.step, 2)
                self.same(fresh.trained.state_dict(), job.trained.state_dict())
                job.export(Path(folder) / "out")
                if hasattr(s, "initial"):
                    other = type(job)(dataclasses.replace(s, initial=str(Path(folder) / "out")))
                    other.export(Path(folder) / "again")
                    self.same(*(files.read(Path(folder) / made)[1] for made in ("again", "out")))
                loaded = heads.load(Path(folder) / "out")
                self.assertEqual(json.loads((Path(folder) / "out" / "config.json").read_text())["vocab_size"], 50)
                self.assertIsNotNone(draft.drafter(job.target, loaded))

    def test_rejected_weight_is_that_of_levels_below_a_wrong_draft(self):
        """In a text that the head itself drafts right nothing is below a rejected draft; in another nearly all is."""
        head = next(head for name, (_, head) in new_heads().items() if name == "fasteagle")
        whole = target()

        def losses(tokens, rejected):
            with torch.no_grad():
                return head_job.level_losses(whole, head, tokens, torch.tensor(0), 8, rejected)[0]

        def drafts(tokens):  # [B,T-2] of level 0 for t_2 and on
            with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
                return head.logits(whole, head.levels(whole, rows.read(whole, tokens))[0]).argmax(-1)

        tokens = text()
        for at in range(2, tokens.shape[1]):  # a draft reads tokens before its own only
            tokens[:, at] = drafts(tokens)[:, at - 2]
        torch.testing.assert_close(losses(tokens, 0.0)[1], losses(tokens, 1.0)[1])
        tokens[:, 2:] = (tokens[:, 2:] + 1) % 50
        for at in range(2, tokens.shape[1]):
            tokens[:, at] = torch.where(drafts(tokens)[:, at - 2] == tokens[:, at], (tokens[:, at] + 1) % 50, tokens[:, at])
        torch.testing.assert_close(losses(tokens, 0.0)[0], losses(tokens, 1.0)[0])  # nothing is before the first level
        self.assertEqual(losses(tokens, 0.0)[1:].tolist(), [0.0] * (len(losses(tokens, 0.0)) - 1))
        torch.testing.assert_close(losses(tokens, 0.5)[1:], 0.5 * losses(tokens, 1.0)[1:])

    def test_evaluation(self):
        with tempfile.TemporaryDirectory() as folder:
            s, job = self.job("fasteagle", Path(folder))
            values = head_job.agreement(job.target, job.trained, s.data, "novels", 32, 2)
            self.assertEqual(len(values), 7)
            prompt = evaluate.prompts(s.data, "novels", 2, 16)
            written = evaluate.write(job.target, prompt, 12, 0.0, 1)
            perfect = evaluate.cycles(draft.drafter(job.target, job.target), written, "none", tree.chain)
            self.assertEqual(evaluate.mean(perfect), 6.0)
            self.assertEqual(evaluate.by_depth(perfect, 5), [1.0] * 5)


if __name__ == "__main__":
    unittest.main()
