"""Aerie: lossless speculative decoding. A model answers several tokens per pass, and never another token than it alone
would have given. See docs/python.md; the training tools live in `aerie.train` (they need PyTorch, nothing here does).

    import aerie
    with aerie.Model("target.aerie") as model, model.drafter("head.aerie") as head:
        with model.session(drafter=head, temperature=0.7, seed=7) as session:
            for text in session.generate("It was", max_tokens=100):
                print(text, end="", flush=True)
"""

from ._target import ModelInfo
from .batch import Batch, BatchStep
from .chat import ChatTemplate
from .constraint import Constraint
from .drafter import Drafter
from .errors import Cancelled, Code, Error
from .grammar import Grammar
from .model import Model
from .profile import Profile
from .runtime import PluginInfo, Runtime
from .session import Finish, Sampling, Session, SessionOptions, State, Step, Token, Tree
from .statistics import Statistics
from .text import Decoder, Tokenizer
from .tools import convert, inspect

__all__ = ["Batch", "BatchStep", "Cancelled", "ChatTemplate", "Code", "Constraint", "Decoder", "Drafter", "Error", "Finish", "Grammar",
           "Model", "ModelInfo", "PluginInfo", "Profile", "Runtime", "Sampling", "Session", "SessionOptions", "State",
           "Statistics", "Step", "Token", "Tokenizer", "Tree", "convert", "inspect"]
