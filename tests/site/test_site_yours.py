"""Yours: a model file that is dropped on the page runs in it, as it runs in Python; what cannot run is refused."""

import base64
import json

import numpy as np
import pytest

from transduce.attention.capture import capture
from transduce.pipeline.pipeline import load

WIDE = "The animal didn't cross the street because it was too wide."
DROP = """([text, name]) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const carried = new DataTransfer();
  carried.items.add(new File([bytes], name));
  const drop = new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true });
  document.getElementById("drop").dispatchEvent(drop);
}"""


@pytest.fixture(scope="module")
def file(run):
    return run / "model.safetensors"


def dropped(page, content, name="model.safetensors"):
    page.evaluate(DROP, [base64.b64encode(content).decode(), name])


def with_config(content, change):
    """The file with another configuration."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    config = json.loads(header["__metadata__"]["config"])
    change(config)
    header["__metadata__"]["config"] = json.dumps(config)
    fresh = json.dumps(header).encode()
    fresh += b" " * (-len(fresh) % 8)
    return len(fresh).to_bytes(8, "little") + fresh + content[8 + length :]


def shown_matrix(page):
    """The numbers of the large picture, from its table."""
    page.click("[data-figure=attention]")
    table = page.locator("[data-name=attention] tbody tr")
    return np.array([[float(cell) for cell in row.split("\t")[1:]] for row in table.all_inner_texts()])


def test_a_dropped_model_translates_as_in_python(opened, file):
    model = load(file.parent)
    page = opened("yours")
    assert page.is_hidden("#running")
    dropped(page, file.read_bytes(), "mine.safetensors")
    page.wait_for_selector("#facts")
    assert page.text_content("#facts h2") == "mine.safetensors"
    numbers = sum(weight.numel() for weight in model.model.parameters())
    assert page.text_content("#fact-parameters") == f"{numbers:,}"
    for text in (WIDE, "The dog is old."):
        page.fill("#typed", text)
        page.wait_for_function(
            "said => document.getElementById('output').textContent === said", arg=model.predict(text).text
        )


@pytest.mark.parametrize(("layer", "head"), [(0, 2), (4, 1)])
def test_the_matrix_of_any_head_is_the_models(opened, file, layer, head):
    model = load(file.parent)
    name = f"encoder.blocks.{layer}.self_attention"
    page = opened("yours", link=f"#layer={name}&head={head}&unit=tokens")
    page.set_input_files("#file", file)
    page.wait_for_selector("#facts")
    page.fill("#typed", WIDE)
    page.evaluate("([layer, head]) => Transduce.go({ layer, head, unit: 'tokens' }, true)", [name, head])
    page.wait_for_selector("[data-figure=attention]")
    with capture(model) as record:
        model.predict(WIDE)
    true = record[name][0][0, head]
    shown = shown_matrix(page)
    assert shown.shape == tuple(true.shape)
    assert shown == pytest.approx(true.numpy(), abs=2e-3)
    assert shown.sum(1) == pytest.approx(np.ones(len(shown)), abs=0.02)


def test_another_head_shows_other_numbers(opened, file):
    page = opened("yours", link="#unit=tokens")
    page.set_input_files("#file", file)
    page.wait_for_selector("#facts")
    page.fill("#typed", WIDE)
    page.wait_for_selector("[data-figure=attention]")
    first = shown_matrix(page)
    page.evaluate("Transduce.go({ layer: 'encoder.blocks.2.self_attention', head: '0' }, true)")
    page.wait_for_function("document.querySelector('[data-name=attention] h2').textContent.includes('layer 3')")
    table = page.locator("[data-name=attention] tbody tr").first.inner_text()
    assert [float(cell) for cell in table.split("\t")[1:]] != first[0].tolist()


def test_cutting_animal_and_tired_flips_the_pronoun_of_a_dropped_model(opened, file):
    page = opened("yours")
    page.click("#try")
    page.wait_for_function("document.getElementById('output').textContent.includes(\"qu'il\")")
    page.evaluate("Transduce.go({ kind: 'encoder', layer: 'mean', row: '7' }, true)")
    for word in ("animal", "tired"):
        page.locator("#view .cuts button", has_text=word).click()
    page.wait_for_function("document.getElementById('output').textContent.includes(\"qu'elle\")")
    page.click("#cut-none")
    page.wait_for_function("document.getElementById('output').textContent.includes(\"qu'il\")")


@pytest.mark.parametrize("cut", [4, 1000, 200_000])
def test_a_broken_file_is_said_to_be_broken(opened, file, cut):
    page = opened("yours")
    dropped(page, file.read_bytes()[:cut], "half.safetensors")
    page.wait_for_selector("#problem")
    assert page.text_content("#problem").startswith("half.safetensors cannot be read: ")
    assert page.is_hidden("#running")


def test_a_file_that_is_no_model_and_a_model_that_cannot_run_are_refused_with_the_reason(opened, file):
    page = opened("yours")
    content = file.read_bytes()
    dropped(page, with_config(content, lambda config: config.update(task={"kind": "tagging"})))
    page.wait_for_selector("#problem")
    told = page.text_content("#problem")
    assert told == 'model.safetensors does not run in this page: task.kind = "tagging".'
    dropped(page, with_config(content, lambda config: config["search"].update(min_length=3)))
    page.wait_for_function("document.getElementById('problem')?.textContent.includes('search.min_length = 3')")
    dropped(page, content)
    page.wait_for_selector("#facts")
    assert page.locator("#problem").count() == 0


def test_a_running_model_is_not_hard_to_reach(opened, axe):
    page = opened("yours", width=390)
    page.click("#try")
    page.wait_for_selector("[data-name=attention]")
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
