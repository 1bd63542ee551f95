"""Beyond text: recordings with their licences, drawn as the explorer draws them, and a memory that runs in the page."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from transduce.core.model_file import load_model_file, save_model_file
from transduce.interpret.memory_drawing import MemoryDrawing
from transduce.pipeline.pipeline import Pipeline, load
from transduce.site.build import RECORDINGS
from transduce.site.generated import SCENES, write_graph, write_questions, write_trees
from transduce.site.record import DRAWN, MOST, RECORDED, in_bytes

TASKS = ("speech", "labels", "spans", "trees", "graph", "memory")
MAY_BE_PASSED_ON = {"CC BY-SA 4.0", "none"}  # none: generated
KEPT = {name: json.loads((RECORDINGS / f"{name}.json").read_text(encoding="utf-8")) for name in TASKS}


@pytest.mark.parametrize("name", TASKS)
def test_a_recording_is_small_and_says_where_it_comes_from(name):
    path = RECORDINGS / f"{name}.json"
    assert path.stat().st_size <= MOST
    record = KEPT[name]["record"]
    assert record["licence"] in MAY_BE_PASSED_ON
    generated = name == "memory" or RECORDED[name].write is not None
    assert (record["licence"] == "none") == (record["url"] == "") == generated
    assert (RECORDINGS / f"{name}.toml").is_file()
    assert record["updates"] > 0
    assert 0 <= record["value"] <= 100
    assert len(record["sha256"]) == 64


def test_what_is_recorded_is_what_is_asked_for():
    for name in TASKS:
        assert len(KEPT[name].get("examples", [])) == len(RECORDED[name].texts), name
        for example in KEPT[name].get("examples", []):
            assert {layer["kind"] for layer in example["attention"]} == ({DRAWN[name]} if name in DRAWN else set())


def test_speech_was_heard_right():
    said = dict(zip("0123456789", "零一二三四五六七八九", strict=True))
    for example in KEPT["speech"]["examples"]:
        digits = [part[0] for part in example["text"].split(" + ")]
        assert example["nbest"][0]["text"] == "".join(said[digit] for digit in digits)


def test_one_noun_turns_the_tree():
    telescope, beard, *_ = [each["nbest"][0]["text"] for each in KEPT["trees"]["examples"]]
    assert "(NP (DT the) (NN man)) (PP" in telescope
    assert "(NP (NP (DT the) (NN man)) (PP" in beard


@pytest.mark.parametrize(
    ("task", "shows"),
    [("speech", "heard"), ("labels", "entities"), ("spans", "answer"), ("trees", "tree"), ("graph", "neighborhood")],
)
def test_each_task_is_drawn_and_another_example_is_another_picture(opened, axe, task, shows):
    page = opened("beyond-text", link=f"#task={task}")
    figure = page.locator(f"[data-name={shows}]")
    first = figure.inner_html()
    record = KEPT[task]["record"]
    assert f"{record['updates']:,}" in page.text_content("#record")
    assert str(record["value"]) in page.text_content("#record")
    assert axe(page) == []
    page.select_option("#example", "1")
    page.wait_for_function(
        "([name, before]) => document.querySelector(`[data-name=${name}]`)?.innerHTML !== before", arg=[shows, first]
    )


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("task", TASKS)
def test_no_task_is_wider_than_a_telephone(opened, axe, language, task):
    page = opened("beyond-text", language, 390, f"#task={task}&theme=dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert axe(page) == []


def test_a_task_is_chosen_by_a_click_and_kept_in_the_link(opened):
    page = opened("beyond-text")
    page.get_by_role("button", name="Trees").click()
    page.wait_for_selector("[data-name=tree]")
    assert "task=trees" in page.url


def test_the_sound_that_is_kept_is_the_recording(opened):
    page = opened("beyond-text")
    recording = page.evaluate("Transduce.recordings.speech.examples[0].recording")
    sound = base64.b64decode(recording["sound"])
    assert sound[:4] == b"RIFF"
    assert (len(sound) - 44) / 2 / 8000 == pytest.approx(recording["seconds"], abs=0.01)


def test_features_in_bytes_come_back(opened):
    values = np.random.default_rng(1).normal(size=(7, 5)).astype("<f4")
    kept = in_bytes({"shape": [7, 5], "weights": base64.b64encode(values.tobytes()).decode()})
    steps = np.frombuffer(base64.b64decode(kept["bytes"]), np.uint8)
    back = kept["low"] + steps / 255 * (kept["high"] - kept["low"])
    assert back == pytest.approx(values.ravel(), abs=(kept["high"] - kept["low"]) / 500)
    page = opened("beyond-text")
    shown = page.evaluate("Array.from(Transduce.unpacked(Transduce.recordings.speech.examples[0].recording.features))")
    told = KEPT["speech"]["examples"][0]["recording"]["features"]
    true = np.frombuffer(base64.b64decode(told["bytes"]), np.uint8) / 255 * (told["high"] - told["low"]) + told["low"]
    assert shown == pytest.approx(true, abs=1e-5)


# The memory.


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> Pipeline:
    """The stored model in Python, its numbers as the file has them."""
    path = tmp_path_factory.mktemp("memory") / "model.safetensors"
    path.write_bytes(base64.b64decode(KEPT["memory"]["model"]))
    file = load_model_file(path)
    save_model_file(path, replace(file, weights={name: weight.float() for name, weight in file.weights.items()}))
    return load(path)


def copy_input(bits_LK):
    length, bits = bits_LK.shape
    x_SF = np.zeros((2 * length + 1, bits + 1))
    x_SF[:length, :bits] = bits_LK
    x_SF[length, bits] = 1
    return x_SF


MACHINE = """inputs => {
  const bytes = Uint8Array.from(atob(Transduce.recordings.memory.model), (letter) => letter.charCodeAt(0));
  return new Transduce.Machine(Transduce.engine.readModelFile(bytes.buffer)).trace(inputs);
}"""


@pytest.mark.parametrize("length", [1, 7, 20])
def test_the_page_computes_what_python_does(opened, machine, length):
    page = opened("beyond-text", link="#task=memory")
    inputs = copy_input(np.random.default_rng(length).integers(0, 2, (length, 8)))
    shown = page.evaluate(MACHINE, inputs.tolist())
    x_1SF = torch.tensor(inputs, dtype=torch.float32)[None]
    with torch.no_grad():
        trace = machine.model.trace(x_1SF)
        logits, _ = machine.model.process(x_1SF, machine.model.initial(1))
    for name in ("added", "read", "weighting", "memory"):
        assert np.array([step[name] for step in shown]) == pytest.approx(getattr(trace, name)[0].numpy(), abs=1e-3)
    assert np.array([step["outputs"] for step in shown]) == pytest.approx(logits[0].sigmoid().numpy(), abs=1e-3)


def test_its_picture_is_that_of_python(opened, machine):
    page = opened("beyond-text", link="#task=memory&bits=b3_5a_0f")
    bits = np.array([[(byte >> bit) & 1 for bit in range(8)] for byte in (0xB3, 0x5A, 0x0F)])
    drawing = MemoryDrawing.of(machine.predict(json.dumps(copy_input(bits).tolist()))).to_dict()
    page.click("[data-figure=over-time]")
    shown = [row.split("\t") for row in page.locator("[data-name=over-time] tbody tr").all_inner_texts()]
    numbers = np.array([[float(cell.replace("−", "-")) for cell in row[1:]] for row in shown])
    panels = [
        np.frombuffer(base64.b64decode(each["weights"]), "<f4").reshape(each["shape"]) for each in drawing["panels"]
    ]
    assert numbers == pytest.approx(np.concatenate(panels).T, abs=6e-3)  # shown with three digits


def test_turning_a_bit_turns_it_in_the_answer(opened):
    page = opened("beyond-text", link="#task=memory&bits=b3_5a_0f")
    on = page.locator("#bits .on")
    assert on.count() == 2 * (5 + 4 + 4)
    picture = page.locator("#bits")
    picture.focus()
    picture.press("ArrowDown")
    picture.press("ArrowDown")
    picture.press("Enter")
    page.wait_for_function("document.querySelectorAll('#bits .on').length === 28")  # given, and said again
    assert "All 24 bits are right." in page.text_content("#wrong")
    assert "bits=b7_5a_0f" in page.url


def test_twenty_vectors_are_copied_though_training_had_ten(opened):
    page = opened("beyond-text", link="#task=memory")
    page.locator("#length").fill("20")
    page.wait_for_function("document.getElementById('wrong').textContent.includes('160')")
    before = page.url
    page.click("#random")
    page.wait_for_function("before => location.href !== before", arg=before)
    assert "160" in page.text_content("#wrong")


def test_mistakes_are_counted_by_what_differs(opened):
    """A memory of 32 slots has no room for more; here the machine is asked, and its mistakes are counted again."""
    page = opened("beyond-text", link="#task=memory")
    given, said = page.evaluate(
        """() => {
          const all = [...document.querySelectorAll("#bits .bit")].map((each) => each.classList.contains("on"));
          return [all.slice(0, all.length / 2), all.slice(all.length / 2)];
        }"""
    )
    wrong = sum(one != other for one, other in zip(given, said, strict=True))
    assert page.locator("#bits .wrong").count() == wrong


# Generated data.


def test_generated_trees_attach_tools_to_the_verb_and_parts_to_the_noun(tmp_path):
    write_trees(tmp_path, train=300, held_out=50)
    tools = {word for scene in SCENES for word in scene.tools}
    combinations = {}
    for part in ("train", "validation", "test"):
        for tree in (tmp_path / f"{part}.mrg").read_text().splitlines():
            assert tree.count("(") == tree.count(")")
            within = "(NP (NP" in tree
            words = [piece.split(")")[0] for piece in tree.split("(NN ")[1:]]
            assert within == (words[2] not in tools), tree
            combinations.setdefault(part, set()).add((words[1], words[2]))
    assert combinations["train"].isdisjoint(combinations["validation"] | combinations["test"])


def test_generated_answers_stand_in_their_texts(tmp_path):
    write_questions(tmp_path, train=40, held_out=10)
    contexts = []
    for part in ("train", "validation", "test"):
        for paragraph in json.loads((tmp_path / f"{part}.json").read_text())["data"][0]["paragraphs"]:
            contexts.append(paragraph["context"])
            for question in paragraph["qas"]:
                [answer] = question["answers"]
                assert paragraph["context"][answer["answer_start"] :].startswith(answer["text"])
    assert len(contexts) == len(set(contexts))


def test_generated_links_lead_mostly_to_pages_of_one_topic(tmp_path):
    write_graph(tmp_path)
    nodes = [line.split("\t") for line in (tmp_path / "nodes.tsv").read_text().splitlines()[1:]]
    label = {name: topic for _, name, _, topic, _ in nodes}
    links = [line.split("\t") for line in (tmp_path / "edges.tsv").read_text().splitlines()[1:]]
    same = sum(label[one] == label[other] for one, other in links) / len(links)
    assert 0.8 < same < 1
    assert sum(split == "train" for _, _, split, _, _ in nodes) == 12


def test_the_same_seed_generates_the_same(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_graph(tmp_path / name)
    assert (tmp_path / "one" / "edges.tsv").read_bytes() == (tmp_path / "two" / "edges.tsv").read_bytes()
