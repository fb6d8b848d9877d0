"""The tools that search and read text files in folders the owner named. Reading only.

Nobody knows who wrote a file that lies in a folder of downloads, so their text is untrusted. Must not know notes.
"""

from collections.abc import Mapping
from dataclasses import replace

from node.agent.tools.calls import in_thread
from node.agent.tools.errors import NothingFound
from node.agent.tools.examples import examples_of
from node.agent.tools.notes import hits_data, hits_text, one_of
from node.agent.tools.registry import Args, Param, ToolAnswer, ToolContext, ToolSpec, check_args
from node.privacy.labels import Confidentiality, Integrity, Labeled
from node.sources.errors import SourceError
from node.sources.notes import Hit, NoteFolder, NoteInfo

__all__ = ["FileRead", "FileSearch"]

SHOWN_HITS = 8
CHOICES_LIMIT = 500

_SEARCH = ToolSpec(
    name="file_search",
    description="Search the text files in the owner's folders for words",
    params={"query": Param("the words to look for", "text")},
    required=("query",),
    examples=(
        "which file talks about the warranty", "search my documents for the rental contract",
        "find the file with the serial number",
        "look in my files for tax", "is there a document about insurance", "in which file is the router mentioned",
        "find documents that mention the school", "search the folder for meeting minutes",
        "which of my files has the recipe",
        *examples_of("file_search"),
    ),
    kind="read",
    cues=("file", "files", "document", "documents", "folder"),
)
_READ = ToolSpec(
    name="file_read",
    description="Open and read one text file by its name",
    params={"name": Param("the file's name", "choice")},
    required=("name",),
    examples=(
        "open the file contract.txt", "show me readme.md", "what is in the document warranty.txt",
        "read the file minutes-may.md to me", "display inventory.csv", "print the contents of the log file",
        "let me see the text file about the router", "open my document on insurance", "what does letter.txt say",
        *examples_of("file_read"),
    ),
    kind="read",
    cues=("file", "document", "open", "read", ".txt", ".md", ".csv"),
)


class FileSearch:
    """Which files hold some words."""

    spec = _SEARCH

    def __init__(self, folders: Mapping[str, NoteFolder]) -> None:
        """folders: by the name the owner calls them."""
        self._folders = folders

    async def choices(self, param: str) -> tuple[str, ...]:
        """Any words may be looked for."""
        return ()

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """The files with most of the words first, each with its best line."""
        check_args(self.spec, args)
        query = str(args["query"])
        hits = await in_thread(lambda: self._search(query))
        text = hits_text(hits, "file", query)
        source = "file_search:" + ",".join(hit.info.name for hit in hits[:3])
        return ToolAnswer(Labeled(text, Confidentiality.PERSONAL, Integrity.UNTRUSTED, source, ()), hits_data(hits))

    def _search(self, query: str) -> list[Hit]:
        hits = [
            replace(hit, info=replace(hit.info, name=f"{label}/{hit.info.name}"))
            for label, folder in self._folders.items() for hit in folder.search(query, limit=SHOWN_HITS)
        ]
        return sorted(hits, key=lambda hit: (-hit.words_found, hit.info.name))[:SHOWN_HITS]


class FileRead:
    """One whole text file."""

    spec = _READ

    def __init__(self, folders: Mapping[str, NoteFolder]) -> None:
        """folders: by the name the owner calls them."""
        self._folders = folders

    async def choices(self, param: str) -> tuple[str, ...]:
        """The names of the files, each with its folder before it; at most CHOICES_LIMIT."""
        if param != "name":
            return ()
        found = await in_thread(self._all)
        return tuple(f"{label}/{info.name}" for label, info in found[:CHOICES_LIMIT])

    async def run(self, args: Args, ctx: ToolContext) -> ToolAnswer:
        """The file's text as it stands. name is a file's name, with or without its folder. Raises NothingFound,
        AmbiguousName; ToolError for what is no text or too long."""
        check_args(self.spec, args)
        name = str(args["name"])
        label, info = await in_thread(lambda: self._find(name))
        note = await in_thread(lambda: self._folders[label].read(info.name))
        text = note.text.strip() or f"The file {info.name} is empty."
        return ToolAnswer(
            Labeled(text, Confidentiality.PERSONAL, Integrity.UNTRUSTED, f"file_read:{label}/{info.name}", ()),
            {"name": f"{label}/{info.name}"},
        )

    def _find(self, name: str) -> tuple[str, NoteInfo]:
        label, _, rest = name.partition("/")
        if rest and label in self._folders:
            try:
                found = self._folders[label].find(rest)
            except SourceError as error:
                raise NothingFound(str(error)) from error
            return label, one_of(found, name, "file")
        pairs = [(label, info) for label, folder in self._folders.items() for info in folder.find(name)]
        shown = [replace(info, name=f"{label}/{info.name}") for label, info in pairs]
        only = one_of(shown, name, "file")
        return pairs[shown.index(only)]

    def _all(self) -> list[tuple[str, NoteInfo]]:
        return [(label, info) for label, folder in self._folders.items() for info in folder.all()]
