"""What LibreTranslate's own page asks: settings, the description, and suggestions in a file."""

import json
from pathlib import Path

from served import Server, serving


def test_settings_are_the_servers(server: Server) -> None:
    found = server.client.get("/frontend/settings").json()
    assert found.pop("supportedFilesFormat")[0] == ".txt"
    assert found == {
        "apiKeys": False,
        "charLimit": 20_000,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "keyRequired": False,
        "language": {
            "source": {"code": "auto", "name": "Auto Detect"},
            "target": {"code": "en", "name": "English"},
        },
        "suggestions": False,
    }


def test_the_description_is_the_servers(server: Server) -> None:
    found = server.client.get("/spec").json()
    assert found == server.client.get("/openapi.json").json()
    assert "/suggest" not in found["paths"]


def test_suggestions_are_off_unless_there_is_a_file_for_them(server: Server) -> None:
    answer = server.post("/suggest", q="a", s="b", source="de", target="en")
    assert (answer.status_code, answer.json()) == (403, {"error": "Suggestions are disabled on this server."})


def test_suggestions_are_kept_as_lines(served_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "suggestions.jsonl"
    with serving([served_file], suggestions=path, api_key="secret", characters=50) as running:
        better = {"q": "Zwei Hunde.\n", "s": "Two “dogs”.", "source": "de", "target": "en", "api_key": "secret"}
        assert running.post("/suggest", **better).json() == {"success": True}
        form = {"q": "a", "s": "b", "source": "de", "target": "en", "api_key": "secret"}
        assert running.client.post("/suggest", data=form).json() == {"success": True}
        assert running.client.post("/suggest", data=form | {"api_key": "wrong"}).status_code == 403
        assert running.client.post("/suggest", data=form | {"s": "x" * 99}).status_code == 413
        missing = running.post("/suggest", q="a", source="de", target="en", api_key="secret")
        assert missing.json() == {"error": "Invalid request: missing s parameter"}
        assert running.client.get("/frontend/settings").json()["suggestions"] is True
        assert "/suggest" in running.client.get("/spec").json()["paths"]
    first, second = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert {key: first[key] for key in ("q", "s", "source", "target", "client")} == {
        "q": "Zwei Hunde.\n",
        "s": "Two “dogs”.",
        "source": "de",
        "target": "en",
        "client": "127.0.0.1",
    }
    assert second["q"] == "a" and "secret" not in path.read_text(encoding="utf-8")
