"""Fast checks of the training code (no data, no trained model): python3 -m unittest discover -s tests"""

import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch

from aerie.train import generate, rows, self_feed, settings, stream, tree
from aerie.train.draft import HeadDrafter, ModelDrafter
from aerie.train.eagle import Settings as EagleSettings
from aerie.train.heads import eagle as head
from aerie.train.model import Llama, LlamaConfig, initialise
from aerie.train.muon import orthogonalise
from aerie.train.schedule import learning_rate_factor
from aerie.train.target import Settings as TargetSettings
from aerie.train.unwrap import unwrap

TINY = dict(vocab_size=50, hidden_size=24, intermediate_size=32, num_attention_heads=3, head_dim=8)


def tiny_target() -> Llama:
    model = Llama(LlamaConfig(**TINY, num_hidden_layers=2, num_key_value_heads=1))
    initialise(model, 0)
    for parameter in model.parameters():  # the trainer's zeros and small numbers would hide mistakes
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def tiny_rows(target: Llama, tokens: torch.Tensor) -> rows.Rows:
    features = target.features(tokens)
    return rows.Rows(tokens, target.embed_tokens(tokens), features, features)  # EAGLE-1/2 reads no taps


def tiny_head() -> head.EagleHead:
    torch.manual_seed(1)
    return head.EagleHead(head.HeadConfig(**TINY, num_key_value_heads=3)).eval()


class Text(unittest.TestCase):
    def test_unwrap_joins_only_what_was_wrapped(self):
        text = "The weather door of the room had been left\nopen to the fog, as the big liner rolled and\nlifted.\nNext.\n"
        self.assertEqual(unwrap(text), "The weather door of the room had been left open to the fog, as the big liner "
                                       "rolled and lifted.\nNext.\n")

    def test_mixture_is_resumable_and_keeps_its_shares(self):
        def new():
            return stream.Mixture([np.arange(5000, dtype=np.uint16)] * 2, [2, 1], 17, seed=3)
        one, two = new(), new()
        one.batch(30)
        two.restore(one.state())
        self.assertEqual(one.state(), [20, 10])
        self.assertTrue(torch.equal(one.batch(7), two.batch(7)))


    def test_windows_of_whole_texts_begin_where_texts_do(self):
        texts = np.repeat(np.arange(12, dtype=np.uint16), 10)
        whole = stream.Windows(texts, 10, seed=1, whole=True)
        epoch = [whole.next() for _ in range(12)]
        self.assertEqual(sorted(window[0] for window in epoch), list(range(12)))
        self.assertTrue(all(len(set(window)) == 1 for window in epoch))


    def test_every_kind_of_text_meets_every_temperature(self):
        with tempfile.TemporaryDirectory() as folder:
            data, seen = Path(folder), set()
            for kind, token in zip(stream.KINDS, (2, 3)):
                np.full(4000, token, np.uint16).tofile(data / f"{kind}.train.u16")

            def written(prompts, count, temperatures):
                seen.update(zip(prompts[:, 0].tolist(), temperatures.tolist()))
                return torch.zeros(len(prompts), 40, dtype=torch.int64)

            generate.write(written, data, data / "out.u16", 24 * 40 * 10, 40, [0.0, 0.5, 1.0], 0.3333, 1, rows=24)
            self.assertEqual(seen, {(token, each) for token in (2, 3) for each in (0.0, 0.5, 1.0)})

    def test_texts_are_written_from_prompts_of_several_lengths_in_turn(self):
        with tempfile.TemporaryDirectory() as scratch:
            data = Path(scratch)
            for kind in stream.KINDS:
                np.arange(1, 400, dtype=np.uint16).tofile(data / f"{kind}.train.u16")
            written = lambda prompts, count, temperatures: torch.cat((prompts, torch.zeros(len(prompts), count, dtype=torch.long)), 1)
            generate.write(written, data, data / "out.u16", 30 * 10, 10, [0.0], 0.5, 1, rows=4, prompts=(2, 7))
            texts = np.fromfile(data / "out.u16", np.uint16).reshape(-1, 10)
            self.assertEqual((texts > 0).sum(1).tolist(), ([2] * 4 + [7] * 4) * 4)
            self.assertTrue(((np.diff(texts[:, :2].astype(int))) == 1).all())


class Schedule(unittest.TestCase):
    def test_shape(self):
        self.assertAlmostEqual(learning_rate_factor(0.0, 0, 10, 0.4), 0.1)
        self.assertEqual(learning_rate_factor(0.5, 100, 10, 0.4), 1.0)
        self.assertAlmostEqual(learning_rate_factor(0.8, 100, 10, 0.4), 0.5)
        self.assertEqual(learning_rate_factor(1.0, 100, 10, 0.4), 0.0)

    def test_recipes_fill_the_settings(self):
        folders = ["--data", "d", "--work", "w", "--out", "o"]
        settings.parse(TargetSettings, "target.toml", "", folders)
        for recipe in ("eagle.toml", "eagle-demo.toml"):
            settings.parse(EagleSettings, recipe, "", [*folders, "--target", "t"])

    def test_orthogonalise(self):
        matrices = torch.randn(2, 40, 16, generator=torch.Generator().manual_seed(0))
        values = torch.linalg.svdvals(orthogonalise(matrices).float())
        self.assertTrue(bool(((values > 0.5) & (values < 1.5)).all()))


class Models(unittest.TestCase):
    def setUp(self):
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, True)

    def test_cached_decoding_equals_a_full_pass(self):
        target = tiny_target()
        text = generate.continue_text(target, torch.tensor([[1, 2, 3], [4, 5, 6]]), 10, 0.0)
        for end in range(3, 13):
            self.assertTrue(torch.equal(target(text[:, :end])[:, -1].argmax(-1), text[:, end]))

    def test_self_feeding_passes_are_what_drafting_does(self):
        drafter = tiny_head()
        embeddings, features = torch.randn(2, 9, 24), torch.randn(2, 9, 24)
        outputs = self_feed.passes(drafter, embeddings, features, 3)
        row, known = 5, features[:, :6]
        for index in range(3):
            last = drafter(embeddings[:, :row + 1 + index], known)[:, -1:]
            torch.testing.assert_close(outputs[index][:, row + index], last[:, 0], atol=1e-5, rtol=1e-5)
            known = torch.cat((known, last), dim=1)

    def test_target_drafts_its_own_greedy_text(self):
        target = tiny_target()
        text = generate.continue_text(target, torch.tensor([[1, 2, 3], [4, 5, 6]]), 20, 0.0)
        drafter = ModelDrafter(target)
        drafter.prepare(tiny_rows(target, text))
        drafts = tree.grow(drafter, torch.tensor([4, 7]), lambda x, _: x.log_softmax(-1), tree.CHAIN)
        self.assertEqual(tree.walk(drafts, text, torch.tensor([4, 7])).tolist(), [5, 5])

    def test_tree_rows_equal_a_plain_pass_over_their_path(self):
        target, drafter = tiny_target(), HeadDrafter(tiny_target(), tiny_head())
        text = torch.randint(0, 50, (1, 12), generator=torch.Generator().manual_seed(2))
        features = target.features(text)
        drafter.prepare(tiny_rows(target, text))
        r = torch.tensor([6])
        root = drafter.begin(r)[:, None]
        first = torch.tensor([[7, 9]])
        level1 = drafter.expand(first, root.expand(1, 2, -1), 1, torch.eye(2, dtype=torch.bool)[None])
        ancestors = torch.tensor([[[False, True, True]]])  # one child below node 1
        level2 = drafter.expand(torch.tensor([[3]]), level1[:, 1:], 2, ancestors)
        tokens = torch.cat((text[:, 1:7], torch.tensor([[9, 3]])), dim=1)
        known = torch.cat((features[:, :6], root, level1[:, 1:]), dim=1)
        plain = drafter.head(target.embed_tokens(tokens), known)
        torch.testing.assert_close(level2[:, 0], plain[:, -1], atol=1e-5, rtol=1e-5)

    def test_kept_nodes_have_kept_parents(self):
        target = tiny_target()
        text = torch.randint(0, 50, (3, 20), generator=torch.Generator().manual_seed(4))
        drafter = HeadDrafter(target, tiny_head())
        drafter.prepare(tiny_rows(target, text))
        grown = tree.grow(drafter, torch.tensor([5, 6, 9]), lambda x, _: x.log_softmax(-1),
                          tree.TreePolicy("small", k=4, depth=3, keep=15))
        for parents, kept in zip(grown.parents.tolist(), grown.kept.tolist()):
            self.assertEqual(sum(kept), 15)
            self.assertTrue(all(p < 0 or kept[p] for p, k in zip(parents, kept) if k))

    def test_head_directory_round_trip(self):
        with tempfile.TemporaryDirectory() as folder:
            saved = tiny_head()
            head.save(saved, Path(folder))
            loaded = head.load(Path(folder))
            self.assertEqual(saved.config, loaded.config)
            for name, value in saved.state_dict().items():
                self.assertTrue(torch.equal(value, loaded.state_dict()[name]))


if __name__ == "__main__":
    unittest.main()
