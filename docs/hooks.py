"""What mkdocs does not do by itself: pages made from the code and the results, and links that leave docs/.

<!-- generated: cli -->   is replaced by what `GENERATED["cli"]` gives, when the site is built
../results/a.json         links to files beside docs/ lead to copies of them in the site
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import cli_reference  # noqa: E402  # after its folder is known
import headline_tables  # noqa: E402  # the same
import http_reference  # noqa: E402  # the same
import results_tables  # noqa: E402  # the same

ROOT = HERE.parent
COPIED = "files"  # where in the site they go
_MARK = re.compile(r"<!-- generated: (\w+) -->")
_LINK = re.compile(r"\]\((\.\./[^)#\s]*)(#[^)\s]*)?\)")


def decisions(folder: str = "decisions") -> list[tuple[str, str]]:
    """The title and the path of each decision, in order; or of the lab notes in another folder."""
    found = []
    for path in sorted((HERE / folder).glob("[0-9]*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        number = path.name[:4].lstrip("0")
        found.append((f"{number}. {re.sub(r'^(Lab notes )?[0-9]+[.:] ', '', title)}", f"{folder}/{path.name}"))
    return found


def decision_list() -> str:
    """All decisions, as links from decisions/index.md."""
    return "\n".join(f"- [{title}]({Path(path).name})" for title, path in decisions())


GENERATED: dict[str, Callable[[], str]] = {
    "cli": cli_reference.markdown,
    "http": http_reference.markdown,
    "decisions": decision_list,
    **headline_tables.TABLES,
    **results_tables.TABLES,
}


def with_generated(markdown: str) -> str:
    """The page with its marks replaced."""
    return _MARK.sub(lambda found: GENERATED[found[1]](), markdown)


def leaving(markdown: str, page: Path) -> Iterator[tuple[str, Path]]:
    """The links of a page to files outside docs/: as they are written, and what they lead to."""
    for found in _LINK.finditer(markdown):
        target = (page.parent / found[1]).resolve()
        if HERE not in target.parents and target.is_file() and ROOT in target.parents:
            yield found[1], target


def place_of(target: Path) -> str:
    """Where in the site a file from outside docs/ lies; Markdown as it is, not as one more page."""
    return f"{COPIED}/{target.relative_to(ROOT)}" + (".txt" if target.suffix == ".md" else "")


def on_config(config: Any) -> Any:
    """Lists the decisions in the navigation."""
    for section in config.nav:
        if "Decisions" in section:
            pages, notes = (
                [{title.replace("`", ""): path} for title, path in decisions(folder)]
                for folder in ("decisions", "decisions/notes")
            )
            section["Decisions"] = ["decisions/index.md", *pages, {"Lab notes": notes}]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the files outside docs/ that pages link to."""
    from mkdocs.structure.files import File

    for page in list(files.documentation_pages()):
        source = Path(page.abs_src_path)
        for _, target in leaving(with_generated(source.read_text(encoding="utf-8")), source):
            to = place_of(target)
            if files.get_file_from_path(to) is None:
                files.append(File.generated(config, to, abs_src_path=str(target)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Puts in what is made, and turns links that leave docs/."""
    markdown, source = with_generated(markdown), Path(page.file.abs_src_path)
    up = "../" * page.file.src_uri.count("/")
    for written, target in set(leaving(markdown, source)):
        markdown = markdown.replace(f"]({written}", f"]({up}{place_of(target)}")
    return markdown
