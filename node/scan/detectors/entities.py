"""Presidio's patterns and spaCy's named entities behind one call, told to stay off the network.

An explicit NLP engine (Presidio's default downloads a model) and a registry of our own without the e-mail recogniser
(it fetches a list of domain suffixes; addresses are found by node.privacy.patterns). Must not know who asks or what
becomes of a span. Loaded in the detectors' process only.
"""

from collections.abc import Iterator
from typing import Any

import spacy
from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
from presidio_analyzer.nlp_engine import NerModelConfiguration, NlpArtifacts, SpacyNlpEngine
from presidio_analyzer.predefined_recognizers import (
    CreditCardRecognizer,
    CryptoRecognizer,
    EsNieRecognizer,
    EsNifRecognizer,
    IbanRecognizer,
    IpRecognizer,
    ItFiscalCodeRecognizer,
    NhsRecognizer,
    PhoneRecognizer,
    PlPeselRecognizer,
    SpacyRecognizer,
    UrlRecognizer,
    UsItinRecognizer,
    UsSsnRecognizer,
)

from node.scan.detectors.weights import SPACY_MODEL

__all__ = ["Entities"]

_LEAST_SCORE = 0.3
_TYPES = {
    "PERSON": "PERSON", "LOCATION": "PLACE", "ORGANIZATION": "ORG", "DATE_TIME": "DATE", "NRP": "GROUP",
    "PHONE_NUMBER": "PHONE", "URL": "URL",
}
_IGNORED = ["CARDINAL", "ORDINAL", "QUANTITY", "MONEY", "PERCENT", "LANGUAGE", "LAW", "WORK_OF_ART", "EVENT", "PRODUCT"]
_MAPPED = {
    "PERSON": "PERSON", "GPE": "LOCATION", "LOC": "LOCATION", "FAC": "LOCATION", "ORG": "ORGANIZATION",
    "DATE": "DATE_TIME", "TIME": "DATE_TIME", "NORP": "NRP",
}
_RECOGNISERS = (
    CreditCardRecognizer, CryptoRecognizer, EsNieRecognizer, EsNifRecognizer, IbanRecognizer, IpRecognizer,
    ItFiscalCodeRecognizer, NhsRecognizer, PlPeselRecognizer, UrlRecognizer, UsItinRecognizer, UsSsnRecognizer,
)


_REGIONS = ("US", "GB", "DE", "FR", "IT", "ES", "CA", "AU")


class _LoadedEngine(SpacyNlpEngine):  # type: ignore[misc]
    """Presidio's engine over a model that is already there: nothing is looked for or downloaded."""

    def __init__(self, nlp: Any) -> None:
        super().__init__(ner_model_configuration=NerModelConfiguration(
            labels_to_ignore=_IGNORED, model_to_presidio_entity_mapping=dict(_MAPPED)))
        self.nlp = {"en": nlp}

    def process_text(self, text: str, language: str) -> NlpArtifacts:
        doc = self.nlp[language](text)
        entities, scores = self._get_updated_entities(doc.ents, [0.85] * len(doc.ents))
        return NlpArtifacts(
            entities=entities, tokens=doc, tokens_indices=[token.idx for token in doc],
            lemmas=[token.lower_ for token in doc],     # context words are compared; a tagger costs too much for that
            nlp_engine=self, language=language, scores=scores,
        )


class Entities:
    """The loaded analyser."""

    def __init__(self) -> None:
        """Raises what loading raises."""
        nlp = spacy.load(SPACY_MODEL, exclude=["tagger", "parser", "attribute_ruler", "lemmatizer", "senter"])
        registry = RecognizerRegistry(recognizers=[recogniser() for recogniser in _RECOGNISERS])
        registry.add_recognizer(PhoneRecognizer(supported_regions=_REGIONS, leniency=1))
        registry.add_recognizer(SpacyRecognizer(supported_entities=sorted(set(_MAPPED.values()))))
        self._analyser = AnalyzerEngine(
            registry=registry, nlp_engine=_LoadedEngine(nlp), supported_languages=["en"])
        self.vocabulary = frozenset(word for word in nlp.vocab.strings if word.isalpha() and word.islower())

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """(start, end, type); they may overlap."""
        for found in self._analyser.analyze(text, "en", score_threshold=_LEAST_SCORE):
            yield found.start, found.end, _TYPES.get(found.entity_type, "ID")
