"""Packages for Argos, installed into Argos itself."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from forked import Run
from random_models import SHORT, language_model, model_file, sentences, translator
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.interop.export_argos import ArgosEngine, PackageFacts, export_argos
from transduce.interop.model_card import Languages
from transduce.interop.parity import Text, compare
from two_vocabularies import translator_of_two

pytest.importorskip("sentencepiece")
pytest.importorskip("ctranslate2")

SWAHILI = Languages("en", "sw")
SIZES: dict[str, Any] = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 1, "feed_forward": 24}


def random_translator(kind: str = "unigram", **sections: Any) -> Any:
    return translator(kind, model={**SIZES, "tied": "none"}, **sections)


def test_a_package_says_what_the_model_says(tmp_path: Path) -> None:
    pipeline = random_translator()
    package = export_argos(pipeline, tmp_path, SWAHILI)
    assert package.name == "translate-en_sw-1_0.argosmodel"
    found = compare(pipeline, ArgosEngine(pipeline, package), Text("random", sentences(60)))
    assert found.holds, found.report()
    assert found.same_text == found.lines
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", package.name]


def test_a_package_of_two_vocabularies_says_what_the_model_says(tmp_path: Path) -> None:
    pipeline = translator_of_two()
    found = compare(
        pipeline, ArgosEngine(pipeline, export_argos(pipeline, tmp_path, SWAHILI)), Text("random", sentences(60))
    )
    assert found.holds, found.report()
    assert found.same_text == found.lines


def test_a_package_has_one_folder_with_what_argos_reads(tmp_path: Path) -> None:
    with zipfile.ZipFile(export_argos(random_translator(), tmp_path, SWAHILI)) as packed:
        assert packed.testzip() is None
        names = {"metadata.json", "sentencepiece.model", "README.md", "model/model.bin", "model/config.json"}
        names |= {"minisbd/sentences.onnx"}
        assert set(packed.namelist()) == {
            f"translate-en_sw-1_0/{name}" for name in {*names, "model/shared_vocabulary.json"}
        }
        metadata = json.loads(packed.read("translate-en_sw-1_0/metadata.json"))
        config = json.loads(packed.read("translate-en_sw-1_0/model/config.json"))
    assert (metadata["from_name"], metadata["to_name"]) == ("English", "Swahili")
    assert (metadata["from_code"], metadata["to_code"]) == ("en", "sw")
    assert config["add_source_eos"] is True


def test_a_package_says_its_version_licence_and_links(tmp_path: Path) -> None:
    facts = PackageFacts("1.2", "CC-BY-4.0", ("https://example.org/models/", "ipfs://abc"))
    export_argos(random_translator(), tmp_path, SWAHILI)
    package = export_argos(random_translator(), tmp_path, SWAHILI, facts)
    assert package.name == "translate-en_sw-1_2.argosmodel"
    links = [f"https://example.org/models/{package.name}", "ipfs://abc"]
    with zipfile.ZipFile(package) as packed:
        metadata = json.loads(packed.read("translate-en_sw-1_2/metadata.json"))
        readme = packed.read("translate-en_sw-1_2/README.md").decode()
    assert (metadata["package_version"], metadata["license"], metadata["links"]) == ("1.2", "CC-BY-4.0", links)
    assert "Version: 1.2" in readme and "Licence: CC-BY-4.0" in readme and f"Link: {links[0]}" in readme
    [entry] = json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))  # of the later one
    assert entry == {**metadata, "code": "translate-en_sw"}
    with pytest.raises(InputError) as raised:
        export_argos(random_translator(), tmp_path, SWAHILI, PackageFacts("new", links=("example.org",)))
    assert [each.partition(":")[0] for each in raised.value.problems] == ["Argos", "Argos"]


def test_what_only_argos_takes_is_refused_elsewhere(run: Run, tmp_path: Path) -> None:
    save_model_file(tmp_path / "model.safetensors", model_file(random_translator()))
    done = run("export", tmp_path / "model.safetensors", "--to", "onnx", "--license", "MIT")
    assert done.code == 2 and "go with --to argos" in done.err


def test_equal_models_are_equal_packages(tmp_path: Path) -> None:
    packages = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        packages.append(export_argos(random_translator(), tmp_path / name, SWAHILI).read_bytes())
    assert packages[0] == packages[1]


def test_what_cannot_go_is_told_all_at_once(tmp_path: Path) -> None:
    pipeline = random_translator("whitespace")
    with pytest.raises(InputError) as raised:
        export_argos(pipeline, tmp_path, Languages("en", ""))
    assert len(raised.value.problems) == 2
    assert "--target-language" in raised.value.problems[0]
    assert "unigram" in raised.value.problems[1]
    with pytest.raises(InputError, match="only models from text to text"):
        export_argos(language_model(), tmp_path, SWAHILI)
    assert not list(tmp_path.iterdir())


ASK = """
import argostranslate.package, argostranslate.sbd, argostranslate.translate, json, sys
for package in json.loads(sys.argv[1]):
    argostranslate.package.install_from_path(package)
languages = {each.code: each for each in argostranslate.translate.get_installed_languages()}
found = languages["en"].get_translation(languages["sw"])
names = {code: each.name for code, each in languages.items()}
print(json.dumps([sorted(languages), names, [found.translate(text) for text in json.loads(sys.argv[2])]]))
"""


def test_argos_installs_both_directions_and_translates(run: Run, tmp_path: Path) -> None:
    told = "argostranslate is not installed; it cannot stand beside us while it wants sacremoses below 0.2"
    pytest.importorskip("argostranslate.translate", reason=told)
    paths = []
    for place, codes in enumerate([("en", "sw"), ("sw", "en")]):
        task = {"kind": "translation", "source": codes[0], "target": codes[1]}
        pipeline = random_translator(seed=place + 3, task=task, search={**SHORT, "max_length_offset": 6})
        paths.append(tmp_path / f"{'-'.join(codes)}.safetensors")
        save_model_file(paths[-1], model_file(pipeline))
    done = run("export", *paths, "--to", "argos", "--output", tmp_path / "packages")
    assert done.code == 0, done.err
    packages = sorted(map(str, (tmp_path / "packages").glob("*.argosmodel")))
    assert [Path(each).name for each in packages] == [
        "translate-en_sw-1_0.argosmodel",
        "translate-sw_en-1_0.argosmodel",
    ]
    lines = ["ba be bi", "ka le"]
    told = {"ARGOS_PACKAGES_DIR": str(tmp_path / "installed"), "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    asked = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(packages), json.dumps(lines)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **told, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert asked.returncode == 0, asked.stderr
    codes, names, outputs = json.loads(asked.stdout.splitlines()[-1])
    assert codes == ["en", "sw"]
    assert names == {"en": "English", "sw": "Swahili"}
    assert all(outputs)
