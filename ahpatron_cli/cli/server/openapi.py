"""The description of the server for machines: OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ahpatron_cli import __version__

_REFUSALS = {
    400: "The body is no JSON, or a row is at fault; `row` is its number from 0, and `field` its "
    "column if one cell is at fault.",
    401: "The token is missing or wrong.",
    403: "The request is for another host.",
    408: "The body did not come in time.",
    409: "No row with this id waits for a label, or it waits already.",
    413: "The body is too large, or has too many rows.",
    415: "The body is not said to be JSON.",
    429: "Too many requests wait; try again after the seconds in Retry-After.",
    431: "The headers are too large.",
    503: "The server is stopping, or the learner waits for its first rows.",
}
"""Each status but 200, and what it means."""
_OF_ALL = (401, 403, 431)
_OF_ROWS = tuple(_REFUSALS)

_SCHEMAS = {
    "Row": {
        "type": "object",
        "description": "Columns and values: numbers, text, true, false, null for a missing value, "
        "nested objects and lists of numbers.",
        "additionalProperties": True,
    },
    "Answer": {
        "type": "object",
        "description": "The fields of the JSON lines of `ahpatron run - --answers jsonl`.",
        "properties": {
            "line": {
                "type": "integer",
                "description": "Number of the row, if there is no --id; else the id column takes "
                "its place.",
            },
            "prediction": {
                "description": "The predicted label; null as long as no label is known."
            },
            "score": {
                "type": ["number", "null"],
                "description": "With several classes, that of the predicted one.",
            },
            "label": {"description": "The label, if it is known."},
            "mistake": {"type": "integer", "enum": [0, 1]},
        },
        "required": ["prediction", "score"],
        "additionalProperties": True,
    },
    "Error": {
        "type": "object",
        "properties": {
            "error": {"type": "string", "description": "What is wrong, and what to try."},
            "row": {
                "type": "integer",
                "description": "Number of the row in the request, from 0.",
            },
            "field": {
                "type": "string",
                "description": "The column whose cell is at fault, if it is known.",
            },
        },
        "required": ["error"],
    },
}


def document() -> dict[str, Any]:
    """The whole description."""
    responses = {}
    for status, meaning in _REFUSALS.items():
        responses[str(status)] = _response(meaning, "application/json", _named("Error"))
    bearer = {"type": "http", "scheme": "bearer"}
    basic = {
        "type": "http",
        "scheme": "basic",
        "description": "Any user; the password is the token.",
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ahpatron",
            "version": __version__,
            "description": "A learner that answers rows, learns their labels now or later, and "
            "counts its mistakes.",
        },
        "security": [{}, {"bearer": []}, {"basic": []}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {"bearer": bearer, "basic": basic},
            "schemas": _SCHEMAS,
            "responses": responses,
        },
    }


def _paths() -> dict[str, Any]:
    health = _looking("Whether the server takes requests", "application/json", refused=[503])
    health["get"]["security"] = [{}]  # no token
    return {
        "/predict": _playing(
            "Answer rows, which are remembered by id, so that their labels can come later",
            "A row, or a list of rows: columns and values. A label is not needed.",
        ),
        "/learn": _playing(
            "Answer rows and learn their labels",
            "A row with its label, or a list of such rows. If one has no label, none is learned.",
        ),
        "/label": _playing(
            "Learn labels of rows that were answered before",
            "An object with the id and the label, under the names of their columns, or a list of "
            "such objects. If one lacks either, no label is learned.",
        ),
        "/health": health,
        "/metrics": _looking("The figures for Prometheus", "text/plain", refused=[*_OF_ALL, 503]),
        "/model": _looking(
            "The model, as `ahpatron inspect --json` shows it",
            "application/json",
            refused=[*_OF_ALL, 503],
        ),
        "/": _looking("A page with the figures, which updates itself", "text/html"),
        "/openapi.json": _looking("This document", "application/json"),
    }


def _playing(summary: str, rows: str) -> dict[str, Any]:
    """A path that takes a row, or a list of them."""
    asked = _response(rows, "application/json", _one_or_many(_named("Row")))
    one_of_many = {"oneOf": [_named("Answer"), _named("Error")]}
    answers = _response(
        "An object for an object; for a list a list in the same order, in which a row with a "
        "faulty cell has its error.",
        "application/json",
        {"oneOf": [_named("Answer"), {"type": "array", "items": one_of_many}]},
    )
    post = {
        "summary": summary,
        "requestBody": {"required": True, **asked},
        "responses": _responses(answers, _OF_ROWS),
    }
    return {"post": post}


def _looking(summary: str, kind: str, refused: Sequence[int] = _OF_ALL) -> dict[str, Any]:
    """A path that shows something."""
    schema = {"type": "object" if kind == "application/json" else "string"}
    shown = _response(summary, kind, schema)
    return {"get": {"summary": summary, "responses": _responses(shown, refused)}}


def _responses(answered: Mapping[str, Any], refused: Sequence[int]) -> dict[str, Any]:
    refusals = {str(status): _reference("responses", str(status)) for status in refused}
    return {"200": answered, **refusals}


def _response(description: str, kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _one_or_many(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"oneOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}


def _named(schema: str) -> dict[str, str]:
    return _reference("schemas", schema)


def _reference(group: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{group}/{name}"}
