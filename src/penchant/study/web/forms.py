"""The forms of a study's settings, from the settings' own types and limits."""

from typing import Any

from pydantic import TypeAdapter

from penchant.study.config import FOLLOW_BROWSER, Config
from penchant.study.refusals import languages

GROUPS = {
    "question": ("question", "format", "size", "tie", "skip", "undo"),
    "goal": ("goal", "stop_top", "stop_level", "criterion", "close_when_enough", "reward"),
    "part": (
        *("answers_per_person", "minutes_per_person", "open_link", "language", "suggestions"),
        *("public_results", "mark_differences", "must_play"),
    ),
    "texts": ("welcome", "consent", "thanks"),
    "quality": ("random_share", "repeat_share", "apart", "check_share", "checks"),
    "panel": (
        *("completion_code", "redirect", "panel_parameters", "ask_first", "screened_out_code"),
        *("screened_out_redirect", "frame_ancestors", "guard_joins"),
    ),
    "model": ("model", "ahead", "lease_seconds"),
}
"""Settings by group, as the page shows them; others are in a last group, `more`."""
LONG = ("question", "welcome", "consent", "thanks")
"""Texts of more than a line."""
FIXED = ("format", "size", "model")
"""They cannot change while a study runs."""
SCHEMA = TypeAdapter(Config).json_schema()


def settings_form(config: Config, words: dict[str, str]) -> list[dict[str, Any]]:
    """Every setting, in groups: its value, default, limits, name and explanation."""
    values = config.to_json()
    left = [name for name in values if not any(name in group for group in GROUPS.values())]
    return [
        {
            "name": group,
            "title": words[f"group_{group}"],
            "fields": [_field(name, values[name], words) for name in names if name in values],
        }
        for group, names in {**GROUPS, "more": left}.items()
        if any(name in values for name in names)
    ]


def _field(name: str, value: Any, words: dict[str, str]) -> dict[str, Any]:
    schema = SCHEMA["properties"][name]
    kind, choices = _kind(name, schema)
    return {
        "name": name,
        "kind": kind,
        "fixed": name in FIXED,
        "value": "\n".join(map(str, value)) if kind == "lines" else _plain(value),
        "default": _plain(schema.get("default")),
        "label": words.get(f"set_{name}", name.replace("_", " ")),
        "help": words.get(f"set_{name}_help", ""),
        "choices": [(one, words.get(f"set_{name}_{one}", one)) for one in choices],
        **_limits(schema),
    }


def _plain(value: Any) -> Any:
    """0 instead of 0.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _kind(name: str, schema: dict[str, Any]) -> tuple[str, list[str]]:
    """How a setting is entered, and the values it may have if these are few."""
    if name == "language":
        return "choice", [FOLLOW_BROWSER, *languages()]
    options = [schema, *schema.get("anyOf", ())]
    choices = [one for o in options for one in o.get("enum", [o["const"]] if "const" in o else [])]
    if choices:
        return "choice", choices
    types = {option.get("type") for option in options}
    if types & {"integer", "number"}:
        return "number", []
    if "array" in types:
        of_text = any(option.get("items", {}).get("type") == "string" for option in options)
        return ("checks" if name == "checks" else "lines" if of_text else "json"), []
    if types & {"object", None} and not types & {"string", "boolean"}:
        return "json", []
    return ("boolean" if "boolean" in types else "long" if name in LONG else "text"), []


def _limits(schema: dict[str, Any]) -> dict[str, Any]:
    """Limits of a number, and whether it may be left empty."""
    options = [schema, *schema.get("anyOf", ())]
    numbers = [one for one in options if one.get("type") in ("integer", "number")]
    number: dict[str, Any] = numbers[0] if numbers else {}
    return {
        "least": number.get("minimum"),
        "most": number.get("maximum"),
        "step": 1 if number.get("type") == "integer" else "any",
        "optional": any(option.get("type") == "null" for option in options),
    }
