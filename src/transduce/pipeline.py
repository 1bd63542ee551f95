"""A trained model, ready for use: `transduce.load(path)`."""

from collections import Counter
from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from transduce.data.lexicon import Lexicon
from transduce.data.tokenizer import Tokenizer
from transduce.errors import InputError
from transduce.inference import Advance, decode
from transduce.likelihood import Likelihood, pair_likelihoods
from transduce.linear import Precision, pack_all
from transduce.long_text import LongText, shorten
from transduce.model_file import ModelFile, check_finite, load_model_file
from transduce.models.protocols import Steps
from transduce.native.beam import Mean
from transduce.outline import Outline, load_weights, make_model, make_task, unpack_tokenizers
from transduce.recipe import Recipe, explain
from transduce.search.ensemble import Ensemble
from transduce.search.settings import READ_BY_ONE, Search
from transduce.tasks.protocols import Prediction, Task
from transduce.wanted import Must, Wanted, both, wanted_of_each

if TYPE_CHECKING:
    from transduce.explore.attention import Attention

__all__ = [
    "EnsemblePipeline",
    "Pipeline",
    "load",
    "load_weights",
    "make_model",
    "make_task",
    "pack_tokenizers",
    "search_settings",
    "unpack_tokenizers",
]


class Pipeline:
    """Text in, predictions out.

    recipe: what the model was trained with; metrics, provenance: what its file says of it.
    others: the tasks of an ensemble's further members.
    lexicon: what a shortlist is made of; None = the file holds none.
    precision: of matrix products.
    """

    others: tuple[Task, ...] = ()

    def __init__(self, file: ModelFile, precision: Precision = "fp32", outline: Outline | None = None) -> None:
        """outline: of this file, where there is one already."""
        outline = outline or Outline(file.config, file.tokenizers, file.weights)
        self.recipe: Recipe = outline.recipe
        self.metrics = file.metrics
        self.provenance = file.provenance
        self.task: Task = outline.task
        self.model = outline.model
        self.lexicon = _lexicon(file, self.task)
        check_finite(file.weights)
        load_weights(self.model, file.weights)
        self.model.eval()
        self.precision = precision
        pack_all(self.model, precision)

    def predict(
        self,
        texts: Sequence[str],
        *,
        batch_size: int = 64,
        long: LongText = "split",
        tell: Callable[[str], None] | None = None,
        advance: Advance | None = None,
        must: Sequence[Must] | Sequence[list[Must]] = (),
        must_not: Sequence[str] | Sequence[list[str]] = (),
        prefix: str | Sequence[str] = "",
        wanted: Sequence[Wanted] | None = None,
        lattice: bool = False,
        workers: int = 1,
        **search: Any,
    ) -> list[Prediction]:
        """One prediction a text, in order; each is what it would be alone. An empty text gives an empty prediction.

        Args:
            batch_size: texts searched together: speed and memory, nothing else.
            long: a text longer than the model can read is translated in pieces, cut off, or refused; of a prompt
                the end is kept.
            tell: told which texts were long and what became of them, and which outputs lack phrases that must appear.
            advance: told how many more texts are done.
            must: phrases that have to appear in the output, as text; a tuple holds alternatives, of which one is
                enough. One list for all texts, or a list of lists, one for each text. An output that reaches its
                limit without them has `ended` False, and the phrases are in `unmet`.
            must_not: phrases that may not appear, likewise.
            prefix: text whose tokens the output begins with, for all or for each.
            wanted: the same three in one object for each text; what they and it want adds up.
            lattice: keep what the beam weighed, for display, as `Prediction.lattice`; not of texts in pieces.
            workers: so many that search side by side, with one thread each; for many texts, on a processor. Threads
                where a search is one call, else processes.
            search: any key of `transduce.search.settings.Search` in place of the recipe's: beam=5, alpha=0.75, ..

        Raises:
            InputError: a search setting is wrong; a text is too long and long="refuse", or in pieces that something
                is wanted of; what is wanted cannot be; no workers can be had here.
        """
        settings = search_settings(self.recipe.search, search)
        wants = wanted_of_each(len(texts), must, must_not, prefix)
        if wanted is not None:
            wants = both(wants, wanted)
        pieces, owners = self._fit(texts, long, tell)
        _refuse_wants_of_pieces(wants, owners)
        of_pieces = [wants[owner] for owner in owners]
        found = decode(
            self.model,
            self.task,
            pieces,
            settings,
            batch_size,
            owners,
            advance,
            of_pieces,
            self.others,
            lattice,
            workers,
            self.lexicon,
        )
        whole: list[list[Prediction]] = [[] for _ in texts]
        for owner, prediction in zip(owners, found, strict=True):
            whole[owner].append(prediction)
        joined = [_joined(text, parts) for text, parts in zip(texts, whole, strict=True)]
        looks = [self.attention if len(parts) == 1 else _refuse_attention_of_pieces for parts in whole]
        predictions = [each.shown_by(look) for each, look in zip(joined, looks, strict=True)]
        if tell:
            _tell_unmet(predictions, tell)
        return predictions

    def attention(self, prediction: Prediction) -> "Attention":
        """What the model attended to while it gave a prediction that was read in one piece.

        Raises:
            InputError: its text was empty; its tokens are not this model's.
        """
        from transduce.explore.attention import attention_of  # late: half of what is imported otherwise

        return attention_of(self.model, self.task, prediction)

    def score(
        self, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
    ) -> list[Likelihood]:
        """The log-probability of each given (source, target); of the target alone for a language model."""
        return pair_likelihoods(self.model, self.task, pairs, batch_size, advance, self.others)

    def _fit(
        self, texts: Sequence[str], long: LongText, tell: Callable[[str], None] | None
    ) -> tuple[list[str], list[int]]:
        """Pieces that the model can read, and the place of the text that each is part of."""
        reads = self.task.tokenizers.get("source")
        prompts, reads = reads is None, reads or self.task.tokenizers["target"]
        pieces: list[str] = []
        owners: list[int] = []
        problems = []
        for place, (text, ids) in enumerate(zip(texts, reads.encode(texts), strict=True)):
            parts = [text]
            if len(ids) > self.task.readable:
                parts, done = shorten(text, reads, self.task.readable, long, prompts)
                known = f"line {place + 1}: {len(ids)} tokens, the model reads {self.task.readable} at most"
                problems.append(f"{known}; shorten it, or ask for split or truncate.")
                if tell and long != "refuse":
                    tell(f"{known}; {done}")
            pieces += parts
            owners += [place] * len(parts)
        if problems and long == "refuse":
            raise InputError(problems)
        return pieces, owners


class EnsemblePipeline(Pipeline):
    """Several pipelines as one, which says the mean of what they say. Search settings and lexicon are the first one's.

    Raises:
        InputError: they do not say the same tokens, some read sources and some do not, or one writes all at once.
    """

    def __init__(self, members: Sequence[Pipeline], mean: Mean = "probability", names: Sequence[str] = ()) -> None:
        _check_members(members, names or [f"model {number}" for number in range(1, len(members) + 1)])
        first = members[0]
        self.recipe, self.task, self.lexicon = first.recipe, first.task, first.lexicon
        self.precision = first.precision
        self.others = tuple(member.task for member in members[1:])
        self.metrics = {}
        self.provenance = {"ensemble": mean, "members": [member.provenance for member in members]}
        self.model = Ensemble([member.model for member in members], mean).eval()

    def attention(self, prediction: Prediction) -> "Attention":
        """None: each member attends in its own way.

        Raises:
            InputError: always.
        """
        raise InputError("an ensemble has no attention of its own; ask one of its members, loaded alone.")


def load(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    trust_code: bool = False,
    ensemble: Mean = "probability",
    precision: Precision = "fp32",
) -> Pipeline:
    """The model in a run directory or a model file; of several of these, an ensemble.

    Args:
        path: one, or a list: models of any architectures that write with the same target tokenizer.
        trust_code: let the file name classes outside Transduce, which are then imported: only if you trust its maker.
        ensemble: what a mean is taken of, "probability" or "log_probability"; see `transduce.search.ensemble`.
        precision: of matrix products. "int8" is faster, and near to what "fp32" gives (`transduce.int8`).

    Raises:
        InputError: no model there, or one that is damaged, foreign or too new; several that do not go together.
    """
    paths = [path] if isinstance(path, str | PathLike) else list(path)
    if not paths:
        raise InputError("load: no model is named.")
    members = [_loaded(each, trust_code, precision) for each in paths]
    if len(members) == 1:
        return members[0]
    return EnsemblePipeline(members, ensemble, [str(each) for each in paths])


def _loaded(path: str | PathLike[str], trust_code: bool, precision: Precision) -> Pipeline:
    """The model is built and compared with what the file says of its weights before these are read."""
    outlines: list[Outline] = []
    file = load_model_file(path, trust_code=trust_code, check=lambda *said: outlines.append(Outline(*said)))
    return Pipeline(file, precision, outlines[0])


def _check_members(members: Sequence[Pipeline], names: Sequence[str]) -> None:
    first = members[0].task
    problems = [
        f"{name}: writes all words at once; an ensemble's members go from one token to the next."
        for name, member in zip(names, members, strict=True)
        if not isinstance(member.model, Steps)
    ]
    for name, member in zip(names[1:], members[1:], strict=True):
        task = member.task
        if task.tokenizers["target"].to_json() != first.tokenizers["target"].to_json():
            problems.append(
                f"{name}: its target tokenizer is not that of {names[0]}; an ensemble's members must say the same "
                "tokens. Train them with one tokenizer: tokenizer.file, or the same data and settings."
            )
        elif ("source" in task.tokenizers) != ("source" in first.tokenizers) or task.start != first.start:
            problems.append(f"{name}: it does not do the task of {names[0]}: one reads a source, the other does not.")
    if problems:
        raise InputError(problems)


def search_settings(recipe: Search, asked: dict[str, Any]) -> Search:
    """The recipe's settings with those asked for in their place.

    A beam asked for is searched, whatever method the recipe has. What the recipe says to its own method alone means
    nothing to another; an alpha tuned for one length rule means nothing to another, so a rule asked for comes with the
    default alpha.

    Raises:
        InputError: an unknown key, a wrong value, or keys that do not go together.
    """
    if asked.get("beam") is not None and "method" not in asked:
        if recipe.method == "mask_predict":
            raise InputError(
                "search.beam: this model writes all words at once and has no beam; ask for iterations and lengths."
            )
        asked = {**asked, "method": "ctc" if recipe.method == "ctc" else "beam"}
    method = asked.get("method", recipe.method)
    meant_otherwise = {name for name, reader in READ_BY_ONE.items() if reader != method}
    if asked.get("length_rule", recipe.length_rule) != recipe.length_rule:
        meant_otherwise.add("alpha")
    kept = recipe.model_dump(exclude=meant_otherwise)
    try:
        return Search.model_validate({**kept, **asked})
    except ValidationError as error:
        raise InputError(explain(error, Search, "search")) from None


def pack_tokenizers(tokenizers: dict[str, Tokenizer]) -> dict[str, str]:
    """As a model file holds them: one text where both sides share one."""
    texts = {side: tokenizer.to_json() for side, tokenizer in tokenizers.items()}
    if len(texts) > 1 and len(set(texts.values())) == 1:
        return {"joint": next(iter(texts.values()))}
    return texts


def _lexicon(file: ModelFile, task: Task) -> Lexicon | None:
    """Raises InputError if the file's is of other vocabularies than the task's."""
    if file.lexicon is None:
        return None
    candidates_SC, frequent_F = (each.numpy() for each in file.lexicon)
    greatest = max(int(candidates_SC.max()), int(frequent_F.max()))
    if len(candidates_SC) != task.sizes.source or greatest >= task.sizes.target:
        raise InputError(
            f"the model file's shortlist is of {len(candidates_SC)} source tokens and of target tokens up to "
            f"{greatest}; its tokenizers have {task.sizes.source} and {task.sizes.target}."
        )
    return Lexicon(candidates_SC, frequent_F)


def _refuse_wants_of_pieces(wants: Sequence[Wanted], owners: Sequence[int]) -> None:
    pieces = Counter(owners)
    problems = [
        f"line {place + 1}: is translated in {pieces[place]} pieces, which cannot share phrases or a prefix between "
        "them; shorten it, or ask for truncate."
        for place, wanted in enumerate(wants)
        if wanted and pieces[place] > 1
    ]
    if problems:
        raise InputError(problems)


def _refuse_attention_of_pieces(prediction: Prediction) -> "Attention":
    raise InputError("this text was read in several pieces, each with an attention of its own: predict a shorter one.")


def _tell_unmet(predictions: Sequence[Prediction], tell: Callable[[str], None]) -> None:
    for number, prediction in enumerate(predictions, 1):
        if prediction.unmet:
            names = ", ".join(f'"{phrase}"' for phrase in prediction.unmet)
            why = "it has no tokens" if not prediction.source.strip() else "its limit came first"
            tell(f"line {number}: {names} must appear and does not: {why}.")


def _joined(text: str, parts: list[Prediction]) -> Prediction:
    """One prediction for a text that was read in parts: texts joined by spaces, probabilities multiplied."""
    if len(parts) == 1:
        return parts[0]
    return Prediction(
        source=text,
        text=" ".join(part.text for part in parts),
        score=sum(part.score for part in parts),
        log_probability=sum(part.log_probability for part in parts),
        tokens=tuple(token for part in parts for token in part.tokens),
        token_log_probabilities=tuple(each for part in parts for each in part.token_log_probabilities),
        ended=all(part.ended for part in parts),
    )
