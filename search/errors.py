"""Every error of search, drawn as a tree.

    SearchError
    +-- QueryRejected      the query is empty or too long
    +-- QueryKeptHere      the guard let the query go to nobody
    +-- PeerSilent         a peer could not be asked or did not answer in time

Must not know who raises or catches it.
"""

__all__ = ["PeerSilent", "QueryKeptHere", "QueryRejected", "SearchError"]


class SearchError(Exception):
    """The search failed."""

    code = "search"
    hint = "Run: kith doctor"


class QueryRejected(SearchError):
    """There is nothing to search for in these words."""

    code = "query_rejected"
    hint = "Use one or more words of at least two letters."


class QueryKeptHere(SearchError):
    """The query holds something private, so it was asked on this device only."""

    code = "query_kept_here"
    hint = "Say it without names, addresses or secrets to ask peers too."


class PeerSilent(SearchError):
    """The peer could not be asked."""

    code = "peer_silent"
    hint = "Check the peer with: kith status"
