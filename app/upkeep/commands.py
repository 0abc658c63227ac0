"""`headroom backup`, `headroom restore` and `headroom doctor`."""

import argparse
import datetime as dt
import sys
from collections.abc import Sequence
from pathlib import Path

from app.upkeep.backup import create_backup
from app.upkeep.doctor import Deployment, DoctorFinding, run_checks
from app.upkeep.files import keep_new_files_private
from app.upkeep.installation import Installation, InstallationError
from app.upkeep.manifest import BackupManifest
from app.upkeep.restore import restore


def upkeep_command(words: Sequence[str], deployment: Deployment) -> int:
    """Run one of the three; the status is 0, 1 (found wrong) or 2 (cannot)."""
    given = _parser().parse_args(words)
    keep_new_files_private()
    now = dt.datetime.now(dt.UTC)
    try:
        if given.command == "doctor":
            return _doctor(deployment, now)
        if given.command == "backup":
            report = _back_up(deployment.installation, given.file, now, force=given.force)
        else:
            report = _restore(deployment.installation, given.file, now)
    except InstallationError as error:
        print(f"headroom: {error}", file=sys.stderr)
        return 2
    print(report)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="headroom")
    commands = parser.add_subparsers(dest="command", required=True)
    backup = commands.add_parser(
        "backup", help="write database and key to one file, while the server runs"
    )
    backup.add_argument("file", type=Path, metavar="FILE")
    backup.add_argument("--force", action="store_true", help="replace FILE if it exists")
    back = commands.add_parser(
        "restore", help="put a backup in the place of what is there, which is kept"
    )
    back.add_argument("file", type=Path, metavar="FILE")
    commands.add_parser("doctor", help="check the installation and say what to do")
    return parser


def _back_up(installation: Installation, file: Path, now: dt.datetime, *, force: bool) -> str:
    if file.exists() and not force:
        raise InstallationError(f"{file} exists already: choose another name, or add --force.")
    if not file.parent.is_dir():
        raise InstallationError(f"the folder {file.parent} does not exist: make it first.")
    manifest = create_backup(installation, file, now)
    size = file.stat().st_size / 1e6
    lines = [f"{file}: {_contents(manifest)}, {size:.1f} MB."]
    if manifest.secret == "HEADROOM_SECRET":  # noqa: S105 - where it came from
        lines.append(
            "The key from HEADROOM_SECRET is inside too, so that browsers find their "
            "learners again: keep this file as safe as the key."
        )
    elif manifest.secret == "none":  # noqa: S105 - where it came from
        lines.append("There was no key yet, so none is inside.")
    else:
        lines.append("The key that signs cookies is inside: keep this file safe.")
    return "\n".join(lines)


def _restore(installation: Installation, file: Path, now: dt.datetime) -> str:
    done = restore(installation, file, now)
    lines = [f"Restored {_contents(done.manifest)} from {done.manifest.day}."]
    lines += [f"What was there before is kept in {folder}" for folder in done.kept]
    if installation.secret and "secret" in done.manifest.files:
        lines.append(
            "HEADROOM_SECRET is set and wins over the key of the backup: if they "
            "differ, leave it out, or browsers will not find their learners."
        )
    lines.append("Start the server now; an older schema is migrated then.")
    return "\n".join(lines)


def _contents(manifest: BackupManifest) -> str:
    learners = manifest.rows.get("learner", 0)
    rows = sum(manifest.rows.values())
    return (
        f"{learners} learner{'' if learners == 1 else 's'} and {rows:,} rows in all "
        f"(schema {manifest.schema_revision})"
    )


def _doctor(deployment: Deployment, now: dt.datetime) -> int:
    findings = list(run_checks(deployment, now))
    for finding in findings:
        print(_line(finding))
    worst = sum(f.level == "problem" for f in findings)
    warnings = sum(f.level == "warning" for f in findings)
    print(f"{worst} problem{'' if worst == 1 else 's'}, {warnings} warnings")
    return int(worst > 0)


def _line(finding: DoctorFinding) -> str:
    line = f"{finding.level:<8} {finding.subject}: {finding.words}"
    return f"{line}\n         → {finding.remedy}" if finding.remedy else line
