"""The README's example runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_readme_example_runs(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert (tmp_path / "cal.json").exists()
    assert (names["probs"].argmax(axis=1) == names["truth"].prediction).all()  # "same labels"
    printed = capsys.readouterr().out
    assert "pTDE" in printed or "ptde-kde" in printed
