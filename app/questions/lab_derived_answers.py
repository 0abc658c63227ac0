"""Answers of a lab that are derived from its other answers: rows and columns of a table, one GPU.

An author writes `squeue` and the table of GPUs once. What `-u`, `-o` or `--query-gpu` select from
them is computed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from app.questions import shell
from app.questions.shell import ShellCommand, ShellOption


class LabAnswer(NamedTuple):
    """A command that has an answer in the present state, in one of its spellings."""

    command_index: int
    command: ShellCommand
    output: str


LabAnswers = Sequence[LabAnswer]
FindCommand = Callable[[ShellCommand], int | None]

_SMI_GPU_ROW = re.compile(
    r"\|\s+(\d+)\s+(\S.*?)\s+(On|Off)\s+\|\s+([\dA-Fa-f:.]+) \S+\s+\|\s+(\S+) \|\n"
    r"\|\s*(\S+)\s+(\S+)C\s+(P\d+)\s+(\d+)W /\s*(\d+)W \|\s+(\d+)MiB /\s*(\d+)MiB \|"
    r"\s+(\S+?)%?\s+(\S+) \|\n\|[^|]*\|[^|]*\|\s+(\S+) \|"
)
_GPU_FIELDS = (
    *("index", "name", "persistence_mode", "pci.bus_id", "ecc.errors.uncorrected.volatile.total"),
    *("fan.speed [%]", "temperature.gpu", "pstate", "power.draw [W]", "power.limit [W]"),
    *("memory.used [MiB]", "memory.total [MiB]", "utilization.gpu [%]", "compute_mode"),
    "mig.mode.current",
)
_SMI_PROCESS_ROW = re.compile(r"\|\s+(\d+)\s+\S+\s+\S+\s+(\d+)\s+C\s+(\S.*?)\s+(\d+)MiB \|")
_OTHER_FIELD_NAMES = {
    "used_memory": "used_gpu_memory",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
    "power.draw.instant": "power.draw",
    "enforced.power.limit": "power.limit",
}
_CELL_UNITS = r" (?:\[(?:MiB|W|%|MHz)\]|MiB|W|%|MHz)(?=,|$)"
_JOB_STATES = {"R": "RUNNING", "PD": "PENDING", "CG": "COMPLETING", "F": "FAILED"}
_COUNT_COLUMNS = ("NODES(A/I/O/T)", "NODES(A/I)", "CPUS(A/I/O/T)", "CPUS(A/I)")
_NODE_STATES = {"alloc": "allocated", "drain": "drained", "drng": "draining", "mix": "mixed"}


class DerivedAnswer(NamedTuple):
    """An output, and the index of the command from whose output it was derived."""

    source_command_index: int
    output: str


def derive_answer_from_other_answers(
    typed: ShellCommand, find_command: FindCommand, answers: LabAnswers, user_name: str
) -> DerivedAnswer | None:
    """Return the answer derived from other answers; None if there is none.

    `user_name` is the user that `$USER` and `--me` stand for.
    """
    options, spec = dict(typed.options), shell.load_program_specs().get(typed.program, {})
    if spec.get("gpus"):
        query = next((name for name in options if name.startswith("--query-")), "")
        return (
            _answer_gpu_query(query, options, answers)
            if query
            else _answer_smi_id_and_display_options(typed, find_command, answers)
        )
    if typed.program == "systemctl" and len(typed.arguments) > 1:
        return _answer_systemd_unit_state(typed, find_command, answers)
    if typed.program == "scontrol" or typed.arguments[:1] == ("describe",):
        show = (
            _answer_scontrol_show_node_or_hostnames
            if typed.program == "scontrol"
            else _answer_kubectl_describe_by_prefix
        )
        return show(typed, answers)
    if "filters" not in spec:
        return None
    by_node = "%n" in options.get("--format", "")
    if typed.program == "sinfo" and (by_node or {"--Node", "--summarize"} & options.keys()):
        summary = _answer_sinfo_nodes_or_summary(typed, answers)
        if summary is None:
            return None
        grouped = [ShellOption(n) for n in ("--Node", "--summarize") if n in options]
        command = ShellCommand("sinfo", tuple(grouped), ())
        answers = [LabAnswer(summary.source_command_index, command, summary.output), *answers]
    return _answer_from_other_table(typed, spec, answers, user_name)


def _answer_gpu_query(
    query_option: str, options: Mapping[str, str], answers: LabAnswers
) -> DerivedAnswer | None:
    """Answer `--query-gpu=FIELDS` and the like, from other such answers and the plain table."""
    columns: dict[str, GpuColumn] = {}
    sources: list[int] = []
    query_outputs = [
        (n, [line.split(", ") for line in text.split("\n") if line[:1] != "["])
        for n, command, text in answers
        if query_option in dict(command.options) and "--id" not in dict(command.options)
        if dict(command.options).get("--format", "").startswith("csv")
    ]
    tables = [(n, text) for n, _, text in answers if _SMI_GPU_ROW.search(text)]
    for n, (header, *rows) in query_outputs:
        if all(len(row) == len(header) for row in rows):
            _add_columns_with_new_names(columns, header, rows)
            sources.append(n)
    for n, text in tables[:1] if query_option != "--query-remapped-rows" else ():
        table = _parse_gpu_table(text, [answer.output for answer in answers])
        if query_option == "--query-compute-apps":
            table = _parse_gpu_process_table(text, table)
        _add_columns_with_new_names(columns, table.header, table.rows)
        sources.append(n)
    if not columns:
        return None
    fields = [
        _normalize_gpu_field_name(query_option, name)
        for name in options[query_option].split(",")
        if name.strip()
    ]
    unknown = [name for name in fields if name not in columns]
    note = f"[This lab doesn't say {', '.join(unknown)}, but {', '.join(sorted(columns))}.]"
    if unknown == fields:
        return DerivedAnswer(sources[0], note)
    height = max(len(column.cells) for column in columns.values())
    columns |= {name: GpuColumn(name, ["[N/A]"] * height) for name in unknown}
    wanted_ids = options.get("--id", "").split(",")
    ids = (columns[f].cells for f in ("index", "pci.bus_id") if f in columns)
    ids_by_row = list(zip(*ids, strict=True))
    count = len(columns[fields[0]].cells)
    chosen_rows = [
        n
        for n in range(count)
        if wanted_ids == [""] or not ids_by_row or {*wanted_ids} & {*ids_by_row[n]}
    ]
    output_format = options.get("--format", "")
    lines = [] if "noheader" in output_format else [", ".join(columns[f].title for f in fields)]
    lines += [", ".join(columns[f].cells[n] for f in fields) for n in chosen_rows]
    text = "\n".join([*lines, *([note] if unknown else [])])
    source = next(
        (n for n, (header, *_) in query_outputs if columns[fields[-1]].title in header), sources[-1]
    )
    if "nounits" in output_format:
        text = re.sub(_CELL_UNITS, "", text, flags=re.MULTILINE)
    return DerivedAnswer(source, text)


class GpuColumn(NamedTuple):
    """A column of a GPU query; the title has the unit too."""

    title: str
    cells: list[str]


def _add_columns_with_new_names(
    columns: dict[str, GpuColumn], header: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Add the columns whose names are new, if they have as many rows as the others."""
    if any(len(column.cells) != len(rows) for column in columns.values()):
        return
    for index, name in enumerate(header):
        key = _normalize_gpu_field_name("", name.partition(" [")[0].strip())
        columns.setdefault(key, GpuColumn(name.strip(), [row[index].strip() for row in rows]))


def _normalize_gpu_field_name(query: str, name: str) -> str:
    name = name.strip().replace("clocks_throttle_reasons", "clocks_event_reasons")
    if query == "--query-compute-apps":
        name = {"name": "process_name"}.get(name, name)
    elif query == "--query-gpu":
        name = name.removeprefix("gpu_")
    name = "pci.bus_id" if name in {"bus_id", "gpu_bus_id"} else name
    return _OTHER_FIELD_NAMES.get(name, name)


class GpuTable(NamedTuple):
    header: list[str]
    rows: list[list[str]]


def _parse_gpu_table(table: str, outputs: Sequence[str]) -> GpuTable:
    """Return the fields of each GPU that the plain table shows, with UUID and driver."""
    header = [*_GPU_FIELDS, "driver_version", "count", "uuid"]
    rows = [list(row) for row in _SMI_GPU_ROW.findall(table)]
    driver = re.search(r"Driver Version: ([\d.]+)", table)
    names = dict(m for text in outputs for m in re.findall(r"GPU (\d+): .*\(UUID: (\S+)\)", text))
    for row in rows:
        row[2] = "Enabled" if row[2] == "On" else "Disabled"
        row += [driver[1] if driver else "", f"{len(rows)}", names.get(row[0], "[N/A]")]
        for column, name in enumerate(header):
            unit = re.search(r"\[(.+)\]", name)
            row[column] = "[N/A]" if row[column] in {"N/A", "Off"} else row[column]
            digits = ".00" if unit and unit[1] == "W" else ""
            row[column] += f"{digits} {unit[1]}" if unit and row[column] != "[N/A]" else ""
    return GpuTable(header, rows)


def _parse_gpu_process_table(table: str, gpus: GpuTable) -> GpuTable:
    by_index = {gpu[0]: dict(zip(gpus.header, gpu, strict=True)) for gpu in gpus.rows}
    rows = []
    for gpu, pid, process_name, used_mebibytes in _SMI_PROCESS_ROW.findall(table):
        if gpu in by_index:
            facts = [by_index[gpu][name] for name in ("name", "pci.bus_id", "uuid")]
            rows.append([*facts, pid, process_name, f"{used_mebibytes} MiB"])
    names = ["gpu_name", "gpu_bus_id", "gpu_uuid", "pid", "process_name", "used_gpu_memory [MiB]"]
    return GpuTable(names, rows)


def _answer_smi_id_and_display_options(
    typed: ShellCommand, find_command: FindCommand, answers: LabAnswers
) -> DerivedAnswer | None:
    """Answer `-i N` and `-d ONE,OTHER` from the answers without them."""
    options = dict(typed.options)
    gpu, parts = options.pop("--id", None), options.get("--display", "").split(",")
    if gpu is None and len(parts) < 2:
        return None
    sources: list[int] = []
    for part in parts:
        display_options = options | ({"--display": part} if part else {})
        index = find_command(
            ShellCommand(typed.program, shell.sort_options(display_options), typed.arguments)
        )
        if index is None:
            return None
        sources.append(index)
    outputs = {answer.command_index: answer.output for answer in answers}
    texts = dict.fromkeys(outputs.get(n, "") for n in sources)
    output = "\n".join(_keep_rows_of_gpu(t, gpu) if gpu else t for t in texts)
    return DerivedAnswer(sources[0], output)


def _keep_rows_of_gpu(text: str, gpu_index_or_id: str) -> str:
    """Return an output with one GPU only, if it shows several."""
    head, *blocks = re.split(r"^(?=GPU (?:[\dA-Fa-f]{8}:|\d+:))", text, flags=re.MULTILINE)
    if len(blocks) > 1:
        blocks_of_gpu = [
            b
            for n, b in enumerate(blocks)
            if gpu_index_or_id == f"{n}" or b[4:].startswith(gpu_index_or_id)
        ]
        return head + "".join(blocks_of_gpu)
    frame = r"^(?=\|\s+\d+\s+\S[^|]*\|\s+[\dA-F]{8}:)"
    head, *blocks = re.split(frame, text, flags=re.MULTILINE)
    if len(blocks) < 2:
        return text
    tail = blocks[-1].partition("\n\n")
    blocks[-1] = tail[0] + "\n"
    return head + "".join(b for b in blocks if b.split()[1] == gpu_index_or_id) + "\n" + tail[2]


def _answer_systemd_unit_state(
    typed: ShellCommand, find_command: FindCommand, answers: LabAnswers
) -> DerivedAnswer | None:
    """Answer `systemctl is-active` and `is-enabled` from the unit's status."""
    verb, unit, *_ = typed.arguments
    pattern = {"is-active": r"Active: (\S+)", "is-failed": r"Active: (\S+)"}
    pattern["is-enabled"] = r"Loaded: [^;]*; (\w+)"
    index = (
        find_command(ShellCommand("systemctl", (), ("status", unit))) if verb in pattern else None
    )
    text = next((answer.output for answer in answers if answer.command_index == index), "")
    match = re.search(pattern[verb], text) if text else None
    return DerivedAnswer(index, match[1]) if match and index is not None else None


def _answer_kubectl_describe_by_prefix(
    typed: ShellCommand, answers: LabAnswers
) -> DerivedAnswer | None:
    """Answer `kubectl describe pod llm` with the first pod whose name begins with `llm`."""
    *kind, prefix = typed.arguments
    for index, command, text in answers if len(kind) > 1 else ():
        *answered_kind, name = command.arguments or ("",)
        is_same_program = (command.program, command.options) == (typed.program, typed.options)
        if is_same_program and answered_kind == kind and name.startswith(prefix):
            return DerivedAnswer(index, text)
    return None


# --- tables of Slurm ---


def _answer_sinfo_nodes_or_summary(
    typed: ShellCommand, answers: LabAnswers
) -> DerivedAnswer | None:
    """Answer `sinfo -N` with a line for each node, and `sinfo -s` with counts, from `sinfo`."""
    options = dict(typed.options)
    for index, command, text in answers:
        if command != ShellCommand("sinfo", (), ()) or "STATE NODELIST" not in text:
            continue
        rows = [line.split() for line in text.split("\n")[1:] if len(line.split()) == 6]
        if "--summarize" in options:
            lines = ["PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST"]
            for name in dict.fromkeys(row[0] for row in rows):
                partition_rows = [row for row in rows if row[0] == name]
                sums = [
                    sum(int(r[3]) for r in partition_rows if _state_count_column(r[4]) == n)
                    for n in range(3)
                ]
                counts = "/".join(f"{n}" for n in (*sums, sum(sums)))
                node_lists = ",".join(row[5] for row in partition_rows)
                _, available, time_limit, *_ = partition_rows[0]
                lines.append(f"{name:9} {available:>5} {time_limit:>10} {counts:>16} {node_lists}")
            return DerivedAnswer(index, "\n".join(lines))
        nodes = sorted((n, row[0], row[4]) for row in rows for n in expand_node_list(row[5]))
        lines = [f"{n:10} {1:5} {name:>9} {state}" for n, name, state in nodes]
        output = "\n".join(["NODELIST   NODES PARTITION STATE", *lines])
        return DerivedAnswer(index, output)
    return None


def _answer_scontrol_show_node_or_hostnames(
    typed: ShellCommand, answers: LabAnswers
) -> DerivedAnswer | None:
    """Answer `scontrol show node` from the row of `sinfo`, and `show hostnames`."""
    if typed.arguments[:2] == ("show", "hostnames") and answers:
        nodes = expand_node_list("".join(typed.arguments[2:]))
        return DerivedAnswer(answers[0].command_index, "\n".join(nodes))
    by_node = _answer_sinfo_nodes_or_summary(
        ShellCommand("sinfo", (ShellOption("--Node"),), ()), answers
    )
    if by_node is None or typed.arguments[:2] != ("show", "node"):
        return None
    hardware = _collect_job_or_node_fields({"NODELIST": ""}, [answer.output for answer in answers])
    nodes = [
        f"NodeName={name} Arch=x86_64 CoresPerSocket=56\n   CPUTot={hardware.get('CPUTot', '112')}\n"
        f"   Gres={hardware.get('Gres', 'gpu:h100:' + hardware.get('GPUS', '8'))}\n   RealMemory=2048000\n"
        f"   State={_NODE_STATES.get(state, state).upper()}\n   Partitions={partition.rstrip('*')}\n"
        "[shortened]"
        for name, _, partition, state in (line.split() for line in by_node.output.split("\n")[1:])
        if typed.arguments[2:] in {(), (name,)}
    ]
    return DerivedAnswer(by_node.source_command_index, "\n\n".join(nodes)) if nodes else None


_VIEW_OPTIONS: tuple[str, ...] = ("--format", "--Format", "--noheader", "--parsable2", "--parsable")
_VIEW_OPTIONS += ("--long", "--sort", "--allocations", "--associations")


class TableCommandOptions(NamedTuple):
    """The options of a command that shows a table: display, values of its rows, all others."""

    view_options: dict[str, str]
    required_cell_by_header: dict[str, str]
    other_options: tuple[Any, ...]


def _split_view_and_row_options(
    command: ShellCommand, program_spec: Mapping[str, Any], user_name: str
) -> TableCommandOptions:
    options = dict(command.options)
    arguments = [a for a in command.arguments if a not in {"where", "withassoc"}]
    for text in [a for a in arguments if "=" in a and program_spec.get("keyed")]:
        arguments.remove(text)
        options[f"--{text.partition('=')[0].lower()}"] = text.partition("=")[2]
    rows: dict[str, str] = {}
    if program_spec.get("keyed") and len(arguments) > 2:
        rows["Name" if arguments[1] == "qos" else "User"] = arguments.pop(2)
    if arguments[:1] == ["get"] and len(arguments) > 2:  # kubectl get pod NAME
        rows["NAME"] = arguments.pop(2)
    if options.get("--output") == "wide":
        del options["--output"]
    if "--me" in options:
        options["--user"] = user_name
        del options["--me"]
    for name, header in program_spec["filters"].items():
        if name not in options:
            continue
        value = options.pop(name).replace("$USER", user_name)
        if name == "--field-selector":
            field, _, value = value.partition("=")
            columns = {"status.phase": "STATUS", "spec.nodeName": "NODE"}
            rows[columns.get(field, "NAME")] = value
        else:
            rows[header] = value
    view = {name: options.pop(name) for name in _VIEW_OPTIONS if name in options}
    return TableCommandOptions(view, rows, (tuple(sorted(options.items())), tuple(arguments)))


class _SourceTable(NamedTuple):
    """A table from which an answer may be derived, and how many wanted columns it has."""

    matching_column_count: int
    command_index: int
    rows: list[list[str]]
    lines: list[str]


def _answer_from_other_table(
    typed: ShellCommand, program_spec: Mapping[str, Any], answers: LabAnswers, user_name: str
) -> DerivedAnswer | None:
    """Answer a command that selects rows or columns, from another table of the same program."""
    view, rows, rest = _split_view_and_row_options(typed, program_spec, user_name)
    format_text = view.get("--format", view.get("--Format", ""))
    fields = _parse_column_formats(
        format_text, program_spec, is_long_format_option="--Format" in view
    )
    best: _SourceTable | None = None
    for index, command, text in answers:
        if command.program != typed.program or shell.ANY_TEXT in f"{command}":
            continue
        recorded = _split_view_and_row_options(command, program_spec, user_name)
        lines = [line for line in text.split("\n") if line[:1] != "["] or [""]
        is_applicable = (
            recorded.other_options == rest
            and recorded.required_cell_by_header.items() <= rows.items()
        )
        if not is_applicable or len(lines[0].split()) < 2:
            continue
        table = _read_table(lines)
        column_names = {name.lower() for name in table[0]}
        column_names |= {*map(str.lower, _COUNT_COLUMNS)} if "state" in column_names else set()
        match_count = sum(field.header.lower() in column_names for field in fields)
        match_count = (
            match_count if match_count == len(fields) or not program_spec["letters"] else 0
        )
        match_count = 9 * match_count + sum(header.lower() in column_names for header in rows)
        if best is None or match_count > best.matching_column_count:
            best = _SourceTable(match_count, index, table, lines)
    if best is None:
        return None
    _, index, (header, *cells), lines = best
    names = {name.lower(): name for name in header}
    fields = [f._replace(header=names.get(f.header.lower(), f.header)) for f in fields]
    header_line_count = len(lines) - len(cells)
    if not program_spec["letters"]:  # as wide as the ruler; job ids are aligned left
        ruler = lines[1] if len(lines) > 1 else ""
        rules = dict(zip(header, map(len, ruler.split()), strict=False))
        fields = [
            f._replace(signed_width=f.signed_width or rules.get(f.header, 10)) for f in fields
        ]
        fields = [
            f._replace(signed_width=-f.signed_width) if f.header == "JobID" else f for f in fields
        ]
    row_indices = [
        n for n, row in enumerate(cells) if _row_matches(dict(zip(header, row, strict=True)), rows)
    ]
    if "--allocations" in view:
        row_indices = [n for n in row_indices if "." not in cells[n][0]]
    if not fields:
        shown_lines = [*(lines[:header_line_count] if "--noheader" not in view else [])]
        shown_lines += [lines[header_line_count + n] for n in row_indices]
        return DerivedAnswer(index, "\n".join(shown_lines))
    outputs = [answer.output for answer in answers]
    facts = [
        _collect_job_or_node_fields(dict(zip(header, cells[n], strict=True)), outputs)
        for n in row_indices
    ]
    unknown = sorted(
        {
            field.header
            for field in fields
            for f in facts
            if not {field.header, field.fact_key_and_default} & f.keys()
            | {":"} & {*field.fact_key_and_default}
        }
    )
    shown_rows = [
        [
            f.get(key.partition(":")[0], f.get(name, key.partition(":")[2] or "N/A"))
            for _, name, key in fields
        ]
        for f in facts
    ]
    shown_rows = _merge_sinfo_rows_adding_counts(
        typed, shown_rows, [field.header in ("NODES", *_COUNT_COLUMNS) for field in fields]
    )
    separator = "|" if {"--parsable", "--parsable2"} & view.keys() else " "
    if "--noheader" not in view:
        rule = [["-" * abs(field.signed_width) for field in fields]]
        rule = rule if header_line_count > 1 and separator == " " else []
        shown_rows = [[field.header for field in fields], *rule, *shown_rows]
    separator = "" if "--Format" in view else separator
    cut_mark = "" if program_spec["letters"] else "+"
    output_lines = [
        separator.join(
            c
            if separator == "|" or not field.signed_width
            else _fit_cell(c, field.signed_width, cut_mark)
            for c, field in zip(row, fields, strict=True)
        ).rstrip()
        for row in shown_rows
    ]
    output_lines += [f"[This lab doesn't say {', '.join(unknown)}.]"] if unknown else []
    return DerivedAnswer(index, "\n".join(output_lines))


def _fit_cell(text: str, signed_width: int, truncation_mark: str) -> str:
    """Return a cell as wide as its column, on the right if positive; `truncation_mark` ends a longer text."""
    cell_width = abs(signed_width)
    text = (
        text
        if len(text) <= cell_width
        else text[: cell_width - len(truncation_mark)] + truncation_mark
    )
    return f"{text:{'<>'[signed_width > 0]}{cell_width}}"


def _merge_sinfo_rows_adding_counts(
    typed: ShellCommand, rows: list[list[str]], is_count_by_column: Sequence[bool]
) -> list[list[str]]:
    """Add up the rows of `sinfo` that differ only in their `is_count_by_column` cells, as `sinfo` does without -N."""
    if typed.program != "sinfo" or "--Node" in dict(typed.options):
        return rows
    merged: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        key = tuple(
            "" if count else cell for cell, count in zip(row, is_count_by_column, strict=True)
        )
        earlier = merged.setdefault(key, row)
        if earlier is not row and "N/A" not in [*earlier, *row]:
            pairs = zip(earlier, row, is_count_by_column, strict=True)
            merged[key] = [
                _add_slash_separated_counts(earlier_cell, added_cell) if count else earlier_cell
                for earlier_cell, added_cell, count in pairs
            ]
    return [*merged.values()]


def _add_slash_separated_counts(left: str, right: str) -> str:
    """Add counts such as 3/1/0/4.

    >>> _add_slash_separated_counts("3/1/0/4", "0/2/0/2")
    '3/3/0/6'
    """
    pairs = zip(left.split("/"), right.split("/"), strict=True)
    return "/".join(str(int(a) + int(b)) for a, b in pairs)


class ColumnFormat(NamedTuple):
    """A column of a format; it is aligned to the right if its width is positive."""

    signed_width: int
    header: str
    fact_key_and_default: str


def _parse_column_formats(
    format_text: str, program_spec: Mapping[str, Any], *, is_long_format_option: bool
) -> list[ColumnFormat]:
    columns = program_spec.get("columns", {})
    fields: list[ColumnFormat] = []
    if "%" in format_text and program_spec["letters"] and not is_long_format_option:
        for right, width, letter in re.findall(r"%(\.?)(\d*)([A-Za-z])", format_text):
            header, _, key = columns.get(letter, f"%{letter}").partition("=")
            fields.append(ColumnFormat(int(width or 0) * (1 if right else -1), header, key))
        return fields
    by_name = {name.lower(): text for name, text in columns.items()}
    for part in filter(None, re.split(r"[,\s]+", format_text)):
        name, _, width = part.partition(":" if program_spec["letters"] else "%")
        header, _, key = by_name.get(name.lower(), name).partition("=")
        digits = re.sub(r"[^\d-]", "", width)
        default = -20 if program_spec["letters"] else 0
        size = int(digits) if digits not in {"", "-"} else default
        fields.append(ColumnFormat(-abs(size) if program_spec["letters"] else size, header, key))
    return fields


def _read_table(lines: Sequence[str]) -> list[list[str]]:
    """Return the header and the rows of a table, cut at its ruler or at spaces."""
    if len(lines) > 1 and re.fullmatch(r"[- ]+", lines[1]):
        spans = [m.span() for m in re.finditer("-+", lines[1])]
        return [[line[a:b].strip() for a, b in spans] for line in (lines[0], *lines[2:])]
    header = lines[0].split()
    rows = [
        (line.rsplit if header[0] == "REASON" else line.split)(None, len(header) - 1)
        for line in lines[1:]
    ]
    return [header, *([r.strip() for r in row] for row in rows if len(row) == len(header))]


def _row_matches(row: Mapping[str, str], required_cell_by_header: Mapping[str, str]) -> bool:
    """Return whether a row has the wanted values; columns that it lacks are ignored."""
    for header, text in required_cell_by_header.items():
        name = next((n for n in row if n.startswith(header)), "")
        values = {v.lower() for v in text.split(",")}
        values |= {_JOB_STATES.get(v.upper(), v).lower() for v in values}
        cell = row.get(name, "")
        cells = {cell.lower().rstrip("*"), cell.lower().partition(".")[0].rstrip("*")}
        cells |= {_JOB_STATES.get(cell, cell).lower(), _NODE_STATES.get(cell, cell)}
        cells |= set(expand_node_list(cell)) if header.startswith("NODE") else set()
        wanted_values = (
            {n for v in values for n in expand_node_list(v)}
            if header.startswith("NODE")
            else values
        )
        if name and "all" not in values and not cells & wanted_values:
            return False
    return True


def expand_node_list(node_list: str) -> list[str]:
    """Return the nodes of a list.

    >>> expand_node_list("gpu1,node[05-06,08]")
    ['gpu1', 'node05', 'node06', 'node08']
    """
    nodes: list[str] = []
    for prefix, numbers in re.findall(r"([^,\[\]]+)(?:\[([\d,-]{1,40})\])?", node_list):
        for part in numbers.split(","):
            first, _, last = part.partition("-")
            if not first:
                nodes.append(prefix)
                continue
            first_number, last_number = int(first), int(last or first)
            nodes += [
                f"{prefix}{n:0{len(first)}}"
                for n in range(first_number, min(last_number, first_number + 999) + 1)
            ]
    return nodes


def _build_sinfo_count_cells(node: Mapping[str, str], outputs: Sequence[str]) -> dict[str, str]:
    """Return nodes and processors of a row of `sinfo` by use: allocated, idle, other, total."""
    state = node["STATE"].rstrip("*")
    state_use, count = _state_count_column(state), int(node.get("NODES", "1"))
    cpus_per_node = next(
        (m[1] for text in outputs if (m := re.search(r"CPUTot=(\d{1,5})", text))), "112"
    )
    facts = {"StateLong": _NODE_STATES.get(state, state)}
    for name, number in (("NODES", count), ("CPUS", count * int(cpus_per_node))):
        if name == "NODES" or state != "mix":
            parts = [str(number if n == state_use else 0) for n in range(3)]
            facts[f"{name}(A/I/O/T)"] = "/".join([*parts, str(number)])
            facts[f"{name}(A/I)"] = "/".join(parts[:2])
    return facts


def _state_count_column(state: str) -> int:
    """Return the column in which a node state is counted: 0 allocated, 1 idle, 2 other."""
    return {"alloc": 0, "mix": 0, "idle": 1}.get(state.rstrip("*"), 2)


def _collect_job_or_node_fields(row: Mapping[str, str], outputs: Sequence[str]) -> dict[str, str]:
    """Return the facts on a job or a node, by column header of its row and by key of `scontrol show`."""
    facts = dict(row)
    node_list = facts.get("NODELIST(REASON)", facts.get("NODELIST", ""))
    if "NODELIST(REASON)" in facts:
        facts["REASON"] = node_list.strip("()") if node_list.startswith("(") else "None"
        facts["NODELIST"] = "" if node_list.startswith("(") else node_list
        facts["STATE"] = _JOB_STATES.get(facts.get("ST", ""), facts.get("ST", ""))
    elif "STATE" in facts:
        facts |= _build_sinfo_count_cells(facts, outputs)
    job = facts.get("JOBID", facts.get("JobID", ""))
    names = [f"JobId={job}"] if job else []
    names += [f"NodeName={node}" for node in expand_node_list(facts.get("NODELIST", ""))]
    for text in outputs:
        if text.startswith(tuple(f"{name}{end}" for name in names for end in " \n")):
            for key, value in re.findall(r"([A-Z]\w+)=(\S*)", text):
                facts.setdefault(key, value.strip("()") if key == "Reason" else value)
    complete_outputs = [text for text in outputs if "[shortened to" not in text]
    if gpus := max((len(_SMI_GPU_ROW.findall(text)) for text in complete_outputs), default=0):
        facts.setdefault("GPUS", f"{gpus}")
    for text in outputs if "NODELIST" in facts and "JOBID" not in facts else ():
        for key, value in re.findall(r"\b(Gres|CPUTot|RealMemory)=(\S*)", text):
            facts.setdefault(key, value)
    return facts


_CTIME_OPTION = re.compile(r"-[A-Za-z]*T[A-Za-z]*|--ctime")
_BOOT_TIME_UNKNOWN = (
    "(This lab does not know when the machine was booted: the times are seconds since then.)"
)


BOOT_FACTS = ("up", "day", "clock", "host")
"""What the time of the boot follows from: output of `uptime`, `date` and `hostname`."""


def convert_dmesg_seconds_if_asked(
    command_tokens: Sequence[str],
    dmesg_output: str,
    find_facts: Callable[[Sequence[str]], Mapping[str, str]],
) -> str:
    """Return the lines of `dmesg` with dates, as `dmesg -T` and `journalctl` print them.

    `--since yesterday` or `today` leaves out what is older. `find_facts` returns the facts of the
    machine by name. If the time of the boot is unknown, the seconds stay, and a sentence says so.
    """
    words = " ".join(command_tokens).split()
    is_journal = "journalctl" in words
    seconds_of_lines = [int(s) for s in re.findall(r"(?m)^\[ *(\d{1,9})\.\d+\]", dmesg_output)]
    if not seconds_of_lines or not (is_journal or any(map(_CTIME_OPTION.fullmatch, words))):
        return dmesg_output
    facts = find_facts(BOOT_FACTS)
    uptime = re.match(r"up (?:(\d{1,3}) days?, +)?(?:(\d\d?):)?(\d\d?)", facts["up"])
    day = re.search(r"Nov +([1-9]|[12]\d|30)$", facts["day"])
    days, hours, minutes = map(int, uptime.groups("0")) if uptime else (0, 0, 0)
    uptime_seconds = ((days * 24 + hours) * 60 + minutes + 1) * 60
    if not uptime or not day or max(seconds_of_lines) > uptime_seconds:
        return f"{dmesg_output}\n{_BOOT_TIME_UNKNOWN}"
    hour, minute, second = map(int, facts["clock"].split(":"))
    boot = datetime(2026, 11, int(day[1]), hour, minute, second, tzinfo=UTC)
    boot -= timedelta(days, hours=hours, minutes=minutes)
    remote = shell.normalize_shell_command(tuple(command_tokens)).ssh_prefix.removeprefix("ssh ")
    time_format = "[%a %b %e %H:%M:%S %Y]"
    if is_journal:
        time_format = f"%b %d %H:%M:%S {remote or facts['host']} kernel:"
    days_ago = {"yesterday": 1, "today": 0}
    first_day = next((int(day[1]) - days_ago[word] for word in words if word in days_ago), 0)
    rows = []
    for line in dmesg_output.split("\n"):
        seconds = re.match(r"\[ *(\d{1,9})\.\d+\]", line)
        time = boot + timedelta(seconds=int(seconds[1])) if seconds else boot
        if not seconds or (time.month, time.day) >= (11, first_day):
            rows.append(f"{time:{time_format}}{line[len(seconds[0]) :]}" if seconds else line)
    return "\n".join(rows) or "-- No entries --"
