"""Labs: what the terminal answers, what is graded, and what the page shows."""

import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.content.file_reader import parse_file
from app.content.parsed_file import ParsedFile
from app.import_export.course_markdown import read_items_of_course_file
from app.questions import lab_session as labs
from app.questions import shell, text_filters
from app.questions import types as kinds
from app.questions.grading import grade_response, render_question_card_faces
from app.questions.lab_session import Lab, LabSession
from app.questions.model import Question, Variant, draw_variant
from app.questions.question_type import GradeResult, SubmittedResponse, UnreadableResponse
from app.questions.types.lab import LONGEST_LINE, MOST_LINES, LabSpec
from app.quiz.store import QUESTION
from tests.quiz.course import EditableLiveCourse

TEXT = (Path(__file__).parent / "labs.md").read_text(encoding="utf-8")
PARSED = parse_file(TEXT, "topics/kv-cache/quiz.md")
XID, MEMORY, POD = PARSED.questions
LAB = MEMORY
ADDRESS = "/quiz/kv-cache/lab-xid"


@pytest.fixture
def live_course() -> EditableLiveCourse:
    return EditableLiveCourse(XID, MEMORY, POD)


def variant(question: Question = XID) -> Variant:
    return draw_variant(question, 0)


def the_lab(question: Question = XID) -> Lab:
    answer = variant(question).answer
    assert isinstance(answer, LabSpec)
    return answer.lab


def typed(*lines: str, question: Question = XID) -> LabSession:
    return labs.replay_lab_lines(the_lab(question), lines)


def output(*lines: str, question: Question = XID) -> str:
    return typed(*lines, question=question).entries[-1].output


def key_of(question: Question, *, right: bool) -> str:
    assert isinstance(question.answer, LabSpec)
    return next(o.key for o in question.answer.diagnoses if o.right == right)


def graded(lines: Sequence[str], *, right: bool = True) -> GradeResult:
    result = grade_response(variant(), {"ran": list(lines), "answer": [key_of(XID, right=right)]})
    assert isinstance(result, GradeResult)
    return result


DRAIN = "scontrol update nodename=dgx-03 state=drain reason='Xid 79'"


# --- reading ---


def test_the_labs_of_these_tests_have_no_problem() -> None:
    assert PARSED.problems == ()


def test_a_block_is_a_command_with_spellings_output_state_and_effect() -> None:
    _, dmesg, sinfo, _, drain, _, reboot = the_lab().commands

    assert [s.plain for s in dmesg.spellings] == ["dmesg", "journalctl -k"]
    assert (dmesg.is_needed, dmesg.states, dmesg.to) == (True, (), "")
    assert dmesg.cue_line.startswith("[93811.204311] NVRM: Xid (PCI:0000:1b:00): 79")
    assert (sinfo.states, drain.states, drain.to) == (("up",), ("up",), "drained")
    assert (reboot.harmful, reboot.note.plain[:8]) == (True, "It would")


def test_several_commands_in_one_block_are_told_apart_by_their_output() -> None:
    text = TEXT.replace(
        "$ kubectl get nodes\n", "$ uptime\n up 3 days\n$ free\n\n$ true\n\n$ env\n"
    )
    (*_, pod) = parse_file(text, "topics/kv-cache/quiz.md").questions
    assert isinstance(pod.answer, LabSpec)

    names = {
        c.first_spelling: c.output.plain for c in pod.answer.lab.commands if c.states == ("free",)
    }
    assert list(names)[:4] == ["uptime", "free", "true", "env"]
    assert (names["uptime"], names["free"], names["true"]) == (" up 3 days", "", "")


def test_figures_of_the_catalog_and_of_estimates_stand_in_the_output() -> None:
    line = output(
        "nvidia-smi --query-gpu=memory.used,memory.total,power.limit --format=csv", question=MEMORY
    ).split("\n")[1]

    assert line == " 15260 MiB, 81559 MiB, 700.00 W"


def test_a_drawn_number_with_a_leading_zero_stays_as_it_is_written() -> None:
    hosts = {draw_variant(XID, seed).answer.lab.host.plain for seed in range(9)}  # type: ignore[union-attr]

    assert hosts == {"dgx-03", "dgx-07", "dgx-11"}


# --- commands ---


@pytest.mark.parametrize(
    ("authored", "learner"),
    [
        ("nvidia-smi -q -d ECC -i 3", "nvidia-smi  --id=3 --query --display ECC"),
        ("nvidia-smi -q -d ECC -i 3", "sudo /usr/bin/nvidia-smi -i3 -d=ECC -q"),
        ("nvidia-smi", "watch -n 1 nvidia-smi"),
        ("dmesg", "sudo dmesg -T --color=always"),
        ("journalctl -u slurmd", "journalctl --unit slurmd --no-pager -n 50"),
        ("squeue -u bob -l", "squeue --long --user=bob"),
        ("kubectl get pods -n gpu", "kubectl -n gpu get po"),
        ("kubectl describe pod llm-0", "kubectl describe pod/llm-0"),
        (
            "scontrol update nodename=n1 state=drain reason=…",
            'scontrol update State=DRAIN NodeName=n1 Reason="Xid 79"',
        ),
        (
            "scontrol update nodename=… state=drain reason=…",
            "scontrol update state=drain nodename=n1 reason=x",
        ),
        (
            "scontrol update nodename=n1 state=drain …",
            "scontrol update reason=x state=drain nodename=n1",
        ),
        ("scontrol update nodename=n1 state=drain …", "scontrol update state=drain node=n1"),
        ("scontrol update … state=drain", "scontrol update state=drain nodename=n1"),
        ("kubectl label node n1 a=1 b=2", "kubectl label no n1 b=2 a=1"),
        ("kubectl label node n1 b=2 …", "kubectl label node n1 a=1 b=2 --overwrite"),
        ("sysctl -w vm.swappiness=1 kernel.panic=5", "sysctl -w kernel.panic=5 vm.swappiness=1"),
        ("dd if=/dev/zero of=/data/x bs=1M", "dd bs=1M of=/data/x if=/dev/zero"),
        ("scontrol show job …", "scontrol show jobs 4711"),
        ("journalctl -u fabric…", "journalctl -u fabric"),
        ("journalctl -u fabric…", "journalctl --unit=fabricmanager.service --no-pager"),
        ("journalctl -u fabric …", "journalctl -u fabric.service --no-pager"),
        ("journalctl -u fabric …", "journalctl -u fabric"),
        ("cat /var/log/sys…", "cat /var/log/sys"),
        ("cat /var/log/sys…", "cat /var/log/syslog /var/log/dmesg"),
        ("ls -l -a /data", "ls -al /data"),
        ("ipmitool sel list", "ipmitool -I lanplus -H bmc -U admin sel elist"),
        ("dcgmi diag -r 3", "dcgmi diag --run 3"),
        ("sinfo -R", "sinfo --list-reasons 2>/dev/null"),
        ("sinfo -N -l", "sinfo -Nel"),
        ("kubectl get pods", "k get po"),
        ("nvidia-smi -q", "nvidia-smi -a"),
    ],
)
def test_two_spellings_mean_one_command(authored: str, learner: str) -> None:
    (one,), (other,) = shell.parse_shell_line(authored), shell.parse_shell_line(learner)

    assert shell.pipeline_matches(one.commands, other.commands)


@pytest.mark.parametrize(
    ("authored", "learner"),
    [
        ("nvidia-smi -i 3", "nvidia-smi -i 2"),
        ("nvidia-smi -q", "nvidia-smi"),
        ("scontrol update nodename=n1 reason=…", "scontrol update nodename=n1 reason="),
        ("kubectl get pods -n gpu", "kubectl get pods -n default"),
        ("kubectl label node n1 a=1 b=2", "kubectl label node n1 a=2 b=1"),
        ("scontrol update nodename=n1 state=drain …", "scontrol update nodename=n1 state=resume"),
        ("scontrol update nodename=n1 state=drain …", "scontrol update nodename=n1 reason=x"),
        ("scontrol update nodename=n1 …", "scontrol show nodename=n1"),
        ("ping -q gpu…", "ping -q"),
        ("ping gpu…", "ping node1"),
        ("ping gpu…", "ping -q gpu1"),
        ("ssh … uptime", "ssh uptime"),
        ("sinfo -N", "sinfo -n"),
    ],
)
def test_two_commands_are_told_apart(authored: str, learner: str) -> None:
    (one,), (other,) = shell.parse_shell_line(authored), shell.parse_shell_line(learner)

    assert not shell.pipeline_matches(one.commands, other.commands)


OUTPUT = "GPU 0: H100\nGPU 1: H100\nno Xid\ngpu 2: a.b"


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("grep -i gpu", "GPU 0: H100\nGPU 1: H100\ngpu 2: a.b"),
        ("grep -c GPU", "2"),
        ("grep -v GPU", "no Xid\ngpu 2: a.b"),
        ("grep -A1 Xid", "no Xid\ngpu 2: a.b"),
        ("grep -B 1 Xid", "GPU 1: H100\nno Xid"),
        ("grep '^GPU [01]'", "GPU 0: H100\nGPU 1: H100"),
        (r"grep 'Xid\|GPU 0'", "GPU 0: H100\nno Xid"),
        ("grep -E 'Xid|1:'", "GPU 1: H100\nno Xid"),
        ("grep 'G.*0$'", "GPU 0: H100\nGPU 1: H100"),
        ("grep -F a.b", "gpu 2: a.b"),
        ("grep '((['", ""),
        ("head -1", "GPU 0: H100"),
        ("head -n 2", "GPU 0: H100\nGPU 1: H100"),
        ("head -n -3", "GPU 0: H100"),
        ("tail -n 1", "gpu 2: a.b"),
        ("tail -n +4", "gpu 2: a.b"),
        ("wc -l", "4"),
        ("sort -r", "no Xid\ngpu 2: a.b\nGPU 1: H100\nGPU 0: H100"),
        ("less", OUTPUT),
        ("awk '{print $2}'", "0:\n1:\nXid\n2:"),
        ("awk -F: '/GPU/ {print $1}'", "GPU 0\nGPU 1"),
        ("cut -d' ' -f1", "GPU\nGPU\nno\ngpu"),
        ("sort -k2 -rn", "gpu 2: a.b\nGPU 1: H100\nno Xid\nGPU 0: H100"),
        ("cut -c1-3", "GPU\nGPU\nno \ngpu"),
        ("cut -c5-,2", "P0: H100\nP1: H100\noid\np2: a.b"),
        ("cut -d: -f2,1", OUTPUT),
    ],
)
def test_what_stands_behind_a_bar_cuts_the_output(command: str, left: str) -> None:
    (pipeline,) = shell.parse_shell_line(command)

    assert text_filters.apply_text_filter(pipeline.stages[0], OUTPUT) == left


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("sort -k2n", "b 9 2K\na 10 é\na 10 é\nc 10 1T\nB 100 3M"),
        ("sort -k2,2nr -k1,1", "B 100 3M\na 10 é\na 10 é\nc 10 1T\nb 9 2K"),
        ("sort -k2", "c 10 1T\na 10 é\na 10 é\nB 100 3M\nb 9 2K"),
        ("sort -k3h", "a 10 é\na 10 é\nb 9 2K\nB 100 3M\nc 10 1T"),
        ("sort -u -k2,2n", "b 9 2K\na 10 é\nB 100 3M"),
        ("uniq -d", "a 10 é"),
        ("uniq -u", "b 9 2K\nB 100 3M\nc 10 1T"),
        ("uniq -c", "      2 a 10 é\n      1 b 9 2K\n      1 B 100 3M\n      1 c 10 1T"),
        ("wc -c", "40"),
        ("wc", "      5      15      40"),
    ],
)
def test_filters_print_what_those_of_gnu_print(command: str, left: str) -> None:
    (pipeline,) = shell.parse_shell_line(command)

    rows = "a 10 é\na 10 é\nb 9 2K\nB 100 3M\nc 10 1T"
    assert text_filters.apply_text_filter(pipeline.stages[0], rows) == left


@pytest.mark.parametrize(
    "command",
    [
        "sort -V",
        "sort -k2.3",
        "head -c 1K",
        "head -n x",
        "uniq -f1",
        "wc --lines",
        "cut",
        "grep -r X",
        "grep -A x GPU",
        "grep -m",
        "grep",
        "grep -E 'x{2}'",
        "grep 'a*a'",
        r"grep -oP '\d(?=,)'",
    ],
)
def test_a_filter_says_which_options_it_knows(command: str) -> None:
    (pipeline,) = shell.parse_shell_line(command)

    said = text_filters.apply_text_filter(pipeline.stages[0], OUTPUT)
    assert said is not None
    assert said.startswith(f"(Of {pipeline.stages[0][0]}, this lab reads -")
    assert said.endswith(f", and not “{command}”.)")


LOG = "[ 1.0] Xid 79, pid=12\nall well\nall well\n[ 2.0] Xid 119, Xid 120\nend"


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("grep -n Xid", "1:[ 1.0] Xid 79, pid=12\n4:[ 2.0] Xid 119, Xid 120"),
        (
            "grep -nA1 Xid",
            "1:[ 1.0] Xid 79, pid=12\n2-all well\n--\n4:[ 2.0] Xid 119, Xid 120\n5-end",
        ),
        ("grep -m1 -n well", "2:all well"),
        ("grep -m 1 -A 1 Xid", "[ 1.0] Xid 79, pid=12\nall well"),
        ("grep -oE 'w[a-z]+.*l|d=[0-9]+'", "d=12\nwell\nwell"),
        (r"grep -o '\(Xid\|pid\)[ =][0-9]\+\>'", "Xid 79\npid=12\nXid 119\nXid 120"),
        ("grep -o 'Xid [0-9]*'", "Xid 79\nXid 119\nXid 120"),
        ("grep -no 'Xid [0-9]*'", "1:Xid 79\n4:Xid 119\n4:Xid 120"),
        ("grep -oE '[[:digit:]]+$'", "12\n120"),
        (r"grep -o 'X.*,'", "Xid 79,\nXid 119,"),
        (r"grep -oP 'pid=\d+'", "pid=12"),
        ("grep -oE '(Xid|pid=)[ 0-9]+'", "Xid 79\npid=12\nXid 119\nXid 120"),
        ("grep -o -e 79 -e pid", "79\npid"),
        ("grep -ov Xid", ""),
        ("grep 'Xid|well'", ""),
        ("grep -cx 'all well'", "2"),
        ("grep -w id", ""),
        ("grep -qc Xid", ""),
        ("grep -m 9 -m 1 -o Xid", "Xid"),
        ("grep -i XID -m1", "[ 1.0] Xid 79, pid=12"),
        ("grep -1 end", "[ 2.0] Xid 119, Xid 120\nend"),
    ],
)
def test_grep_prints_what_that_of_gnu_prints(command: str, left: str) -> None:
    (pipeline,) = shell.parse_shell_line(command)

    assert text_filters.apply_text_filter(pipeline.stages[0], LOG) == left


def test_a_pattern_is_cut_into_pieces_so_that_none_takes_long() -> None:
    pieces = text_filters._parse_grep_patterns(r"a.*.*(b+)+x{9}\|^c.d$", {})

    assert [[piece.pattern for piece in alternative] for alternative in pieces] == [
        ["a", "", r"\(b\+\)\+x\{9\}"],
        ["^c.d$"],
    ]

    text = "a" * 2000
    started = time.process_time()
    assert text_filters.apply_text_filter(("grep", "-E", "[^b]*" + "a?c*" * 40 + "b"), text) != text
    assert text_filters.apply_text_filter(("grep", "-E", "a*b"), text) == ""
    assert time.process_time() - started < 1


# --- the terminal ---


def test_the_state_decides_what_a_command_answers() -> None:
    assert "4   idle" in output("sinfo")
    assert "drain dgx-03" in output(DRAIN, "sinfo")
    assert output("scontrol update nodename=dgx-03 state=drain").startswith("slurm_update error")


def test_commands_in_a_row_files_and_pagers_are_understood() -> None:
    assert output("dmesg | grep -ci xid; hostname") == "1\ndgx-03"
    assert output("dmesg > /tmp/evidence") == ""
    assert typed("dmesg > /tmp/evidence").reached_goals == {"#1"}
    assert output("grep -i warning /var/log/server.log", question=MEMORY) == "WARNING cache is full"
    assert output("less /var/log/server.log", question=MEMORY).count("\n") == 2


def test_an_unknown_filter_leaves_the_output_and_says_so() -> None:
    assert output("sinfo | perl -pe 1").endswith(
        "(perl is not part of this lab: the output is as it came.)"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nvidia-sm", "bash: nvidia-sm: command not found. Did you mean nvidia-smi?"),
        ("xyzzy", "bash: xyzzy: command not found."),
        ("ibstat", "ibstat: not part of this lab, which answers dmesg, journalctl"),
        (
            "nvidia-smi -q",
            "nvidia-smi: this lab has no answer to that, or not now. Options that it knows: -L.",
        ),
        ("echo 'open", "bash: a quotation mark is not closed"),
    ],
)
def test_what_has_no_answer_says_why(line: str, said: str) -> None:
    entry = typed(line).entries[0]

    assert entry.output.startswith(said)
    assert entry.is_refused


def test_the_shell_itself_answers_help_man_history_and_clear() -> None:
    assert output("help").startswith("This lab answers dmesg, journalctl, nvidia-smi")
    assert output("man sinfo").count("\n") == 2
    assert output("sinfo --help") == output("man sinfo")
    assert output("sinfo", "history") == "    1  sinfo"
    assert output("sudo -i") == output("sudo su -") == "You are root already."
    assert output("which sinfo") == "/usr/bin/sinfo"
    assert output("sudo whoami") == "root"
    assert [e.typed_line for e in typed("sinfo", "clear", "dmesg").visible_entries] == ["dmesg"]
    assert [e.typed_line for e in typed("sinfo", "clear", "dmesg").entries] == [
        "sinfo",
        "clear",
        "dmesg",
    ]


def test_every_program_has_a_manual_of_three_lines() -> None:
    assert {len(spec["about"]) for spec in shell.load_program_specs().values()} == {3}


def test_a_harmful_command_changes_nothing_and_says_what_it_would_have_done() -> None:
    session = typed("shutdown -r now")

    assert session.state == "up"
    assert session.entries[0].harm_note.plain.startswith("It would have erased the evidence")


def test_the_shortest_way_is_found_and_leaves_harm_out() -> None:
    assert [
        the_lab().commands[n].first_spelling for n in labs.find_shortest_solution(the_lab()) or ()
    ] == [
        "dmesg",
        "scontrol update nodename=dgx-03 state=drain reason=…",
    ]
    assert len(labs.find_shortest_solution(the_lab(POD)) or ()) == 3
    assert set(labs.find_shortest_path_by_state(the_lab(POD))) == {"tainted", "free", "running"}


# --- what follows from other answers ---


def with_blocks(*blocks: str) -> Question:
    """The lab of the pod, with answers of its own."""
    text = TEXT.replace(
        "- [x] A taint", "".join(f"```console\n{b}\n```\n\n" for b in blocks) + "- [x] A taint"
    )
    (*_, pod) = parse_file(text, "topics/kv-cache/quiz.md").questions
    return pod


SQUEUE = """$ squeue
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
                41      h100    train      ana  R   11:20:41      2 node[05-06]
                42      h100     eval      ben PD       0:00      4 (Resources)

$ scontrol show job 42
JobId=42 JobName=eval
   UserId=ben(2107) Account=research QOS=normal Priority=812"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("squeue -h -u ben -o '%i %T %r'", "42 PENDING Resources"),
        ("squeue -t R --noheader -o %.6i", "    41"),
        ("squeue -w node06 -h -O jobid:4,username", "41  ana"),
        ("squeue -j 42 -o '%i %q %Q'", "JOBID QOS PRIORITY\n42 normal 812"),
        ("squeue -h -j 42 -o '%i %v'", "42 N/A\n[This lab doesn't say RESERVATION.]"),
    ],
)
def test_rows_and_columns_of_a_table_are_those_that_were_asked_for(line: str, said: str) -> None:
    assert output(line, question=with_blocks(SQUEUE)) == said


SACCT = """$ sacct
JobID           JobName      State     MaxRSS
------------ ---------- ---------- ----------
41                train  COMPLETED
41.batch          batch  COMPLETED     65530M"""


def test_a_table_with_a_ruler_is_cut_at_its_columns() -> None:
    lab = with_blocks(SACCT)

    assert output("sacct -j 41 -n -o jobid,maxrss -P", question=lab) == "41|\n41.batch|65530M"
    assert output("sacct -j 41 -X -n -o jobid,state", question=lab) == "41            COMPLETED"


SINFO = """$ sinfo
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
h100*        up 2-00:00:00      2  alloc node[01-02]
h100*        up 2-00:00:00      1   idle node03"""


@pytest.mark.parametrize("line", ["kubectl get pods -n iris -o wide", "sacct -o JobID,State"])
def test_an_output_of_one_line_is_a_table_without_rows(line: str) -> None:
    lab = with_blocks(
        "$ kubectl get pods -n iris\nNo resources found in iris namespace.",
        "$ sacct\nJobID State ExitCode",
    )

    assert not typed(line, question=lab).entries[0].is_refused


def test_sinfo_counts_and_lists_nodes() -> None:
    lab = with_blocks(SINFO)

    assert output("sinfo -N -h", question=lab).split("\n")[1].split() == [
        "node02",
        "1",
        "h100*",
        "alloc",
    ]
    assert "2/1/0/3" in output("sinfo -s", question=lab)
    assert output("sinfo -h -t idle -o %N", question=lab) == "node03"


GPUS = """$ nvidia-smi
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |
| N/A   51C    P0            121W /  700W |   68123MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H100 80GB HBM3          On  |   00000000:43:00.0 Off |                    0 |
| N/A   50C    P0            119W /  700W |       1MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|    0   N/A  N/A            31002      C   python                               68114MiB |"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--query-gpu=index,memory.used --format=csv,noheader", "0, 68123 MiB\n1, 1 MiB"),
        (
            "--query-gpu=temperature.gpu,fan.speed --format=csv -i 1",
            "temperature.gpu, fan.speed [%]\n50, [N/A]",
        ),
        ("--query-gpu=power.draw --format=csv,noheader,nounits", "121.00\n119.00"),
        ("--query-compute-apps=pid,used_memory --format=csv,noheader", "31002, 68114 MiB"),
        ("--version | head -1", "NVIDIA-SMI version  : 580.95.05"),
    ],
)
def test_fields_of_gpus_come_from_the_plain_table(line: str, said: str) -> None:
    assert output(f"nvidia-smi {line}", question=with_blocks(GPUS)) == said


def test_an_unknown_field_names_those_that_are_known() -> None:
    said = output("nvidia-smi --query-gpu=foo --format=csv", question=with_blocks(GPUS))

    assert said.startswith("[This lab doesn't say foo, but compute_mode, count, driver_version")


def test_an_unknown_field_leaves_the_others_their_values() -> None:
    said = output("nvidia-smi --query-gpu=index,foo --format=csv", question=with_blocks(GPUS))

    assert said.startswith("index, foo\n0, [N/A]\n1, [N/A]\n[This lab doesn't say foo, but")


def test_a_loop_is_its_body_for_each_word() -> None:
    written = "nvidia-smi -i 0; nvidia-smi -i 1"
    loops = [
        "for i in 0 1; do nvidia-smi -i $i; done",
        "for g in {0..1}; do nvidia-smi -i ${g}; done",
    ]

    assert [shell.parse_shell_line(loop) for loop in loops] == [shell.parse_shell_line(written)] * 2


def test_echo_of_a_command_prints_what_the_command_prints() -> None:
    for line in ("echo node $(hostname)", 'echo "node: $(hostname)"'):
        assert shell.parse_shell_line(line) == shell.parse_shell_line("hostname")


def test_dmesg_with_dates_counts_from_the_boot_of_the_machine() -> None:
    lab = with_blocks(
        "$ uptime\n 09:14:02 up 4 days,  3:12,  1 user\n\n"
        "$ dmesg\n[   10.021733] NVRM: loading\n[355804.310021] NVRM: Xid"
    )

    dated = "[Mon Nov 23 06:02:12 2026] NVRM: loading\n[Fri Nov 27 08:52:06 2026] NVRM: Xid"
    for line in ("dmesg -T", "dmesg -Tx", "dmesg --ctime"):
        assert output(line, question=lab) == dated
    assert output("dmesg", question=lab).startswith("[   10.021733]")


def test_dmesg_keeps_its_seconds_if_they_do_not_fit_the_time_of_the_boot() -> None:
    lab = with_blocks("$ uptime\n 09:14:02 up 12 min,  1 user\n\n$ dmesg\n[355804.310021] Xid")

    kept, said = output("dmesg -T", question=lab).split("\n")
    assert kept == "[355804.310021] Xid"
    assert said.startswith("(This lab does not know when the machine was booted")


def test_journalctl_prints_kernel_messages_with_dates_and_leaves_out_older_ones() -> None:
    lab = with_blocks(
        "$ uptime\n 09:14:02 up 4 days,  3:12,  1 user\n\n"
        "$ dmesg\n[   10.021733] NVRM: loading\n[355804.310021] NVRM: Xid"
    )

    boot, fault = output("journalctl -k", question=lab).split("\n")
    assert boot.startswith("Nov 23 06:02:12 ")
    assert boot.endswith(" kernel: NVRM: loading")
    assert output("journalctl -k --since yesterday", question=lab) == fault


def test_a_file_that_was_written_or_copied_is_listed_and_read() -> None:
    lab = with_blocks("$ cat a.env\nX=1\n\n$ dmesg\nfirst\nXid 79")
    before = ["dmesg | grep Xid > logs/dmesg.txt", "cp a.env a.bak"]

    assert output(*before, "ls", question=lab).split() == ["a.bak", "a.env", "logs"]
    assert output(*before, "cat logs/dmesg.txt", question=lab) == "Xid 79"
    assert output(*before, "grep X a.bak", question=lab) == "X=1"
    assert typed(*before, "cat b.bak", question=lab).entries[-1].is_refused


def test_an_output_that_is_doubled_again_and_again_stays_small() -> None:
    lab = with_blocks("$ dmesg\nfirst\nXid 79")
    doubled_line = "awk '{print $0 $0 $0 $0 $0 $0 $0 $0 $0}'"

    assert len(output("dmesg > a", *["cat a >> a"] * 24, "cat a", question=lab)) == 20_000
    assert len(output("dmesg" + f" | {doubled_line}" * 8, question=lab)) < 20_000


@pytest.mark.parametrize(
    ("line", "held"),
    [
        ("grep Xid dmesg.log > out", "Xid 7"),
        ('ssh n2 "dmesg | grep Xid" > out', "Xid 80"),
        ('ssh n2 "hostname | sort" > out', "n2"),
        ("journalctl -k -g xid > out", "Xid 79"),
        ("systemctl status a b > out", "a is up\nb is up"),
        ("dmesg > out; echo done", "first\nXid 79"),
        ("dmesg > all && grep Xid all > out && hostname >> out", "Xid 79\nlab"),
        ("for i in 3 4; do echo $i; done > out", "3\n4"),
        ("cat dmesg.log >'out' 2>&1", "Xid 7"),
        ("dmesg | awk '/Xid > 5/' > out", ""),
    ],
)
def test_what_goes_to_a_file_is_in_it_and_not_on_the_screen(line: str, held: str) -> None:
    lab = with_blocks(
        "$ dmesg\nfirst\nXid 79\n\n$ cat dmesg.log\nXid 7\n\n$ ssh n2 dmesg\nfirst\nXid 80\n\n"
        "$ systemctl status a\na is up\n\n$ systemctl status b\nb is up"
    )

    assert output("echo before > out", line, question=lab) == (
        "done" if "echo done" in line else ""
    )
    assert output("echo before > out", line, "cat out", question=lab) == held


def test_a_reason_that_was_typed_stands_in_later_outputs() -> None:
    lab = with_blocks(
        "$ scontrol update nodename=n1 state=drain reason=…\n\n"
        "$ sinfo -R\nREASON               USER      NODELIST\n(your reason)        root      n1"
    )
    drain = 'scontrol update nodename=n1 state=drain reason="fan 3 stands still, ticket 12"'

    assert output("sinfo -R", question=lab).endswith("(your reason)        root      n1")
    assert output(drain, "sinfo -R -n n1", question=lab).endswith(
        "fan 3 stands still,  root      n1"
    )


def test_kubectl_describes_a_pod_by_the_beginning_of_its_name() -> None:
    session = typed("kubectl describe pod ll -n train", question=POD)

    assert "untolerated taint" in session.entries[0].output
    assert session.reached_goals == {"#2"}


def test_rows_without_what_matters_reach_no_goal() -> None:
    block = (
        "```console needed\n$ squeue\n JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
        " 41 h100 a ana R 1:00 1 node01\n 42 h100 b ben PD 0:00 1 (Resources)\n```\n"
        "> `(Resources)`: it waits for nodes.\n\n"
    )
    text = TEXT.replace("- [x] A taint", block + "- [x] A taint")
    lab = parse_file(text, "topics/kv-cache/quiz.md").questions[-1]
    whole, running, waiting = (
        typed(line, question=lab).reached_goals
        for line in ("squeue", "squeue -t R", "squeue -t PD")
    )

    assert (len(whole), whole == waiting, len(running)) == (1, True, 0)


def test_one_gpu_is_cut_out_of_the_table() -> None:
    said = output("nvidia-smi -i 1", question=with_blocks(GPUS))

    assert ("1B:00.0" in said, "43:00.0" in said) == (False, True)


def test_every_lab_answers_everyday_commands_from_its_own_facts() -> None:
    lab = with_blocks(
        "$ id\nuid=7(ana) gid=7(ana)", "$ uptime\n 10:00:07 up 2 days", "$ cat a.txt\nhello"
    )

    assert output("whoami", question=lab) == "ana"
    assert output("date -u", question=lab) == "Fri Nov 27 10:00:07 UTC 2026"
    assert output("uname -n; hostname", question=lab) == "lab\nlab"
    assert output("ls", question=lab) == "a.txt"
    assert output("ls -l a.txt", question=lab) == "-rw-r--r-- 1 ana ana      6 Nov 26 17:20 a.txt"
    assert typed("lsmod", "ls /srv", question=lab).entries[0].is_refused  # no driver is spoken of


def test_another_host_over_ssh_leaves_this_one_its_name() -> None:
    lab = with_blocks("$ ssh n2 uptime\n 10:00:07 up 2 days")

    assert output("ssh n2 hostname", question=lab) == "n2"
    assert output("ssh n2 hostname", "hostname", question=lab) == "lab"


def test_the_kernel_of_another_host_speaks_in_its_name() -> None:
    lab = with_blocks("$ ssh n2 dmesg\n[    7.5] NVRM: up", "$ uptime\n 10:00:07 up 2 days, 1:00")

    assert " n2 kernel: NVRM: up" in output("ssh n2 journalctl -k", question=lab)


def test_a_line_that_the_lab_answers_itself_looks_for_no_facts() -> None:
    terminal = labs.CommandMatcher(the_lab())
    terminal.replay_typed_lines(["dmesg", "sinfo"])
    assert terminal.facts_by_state == {}

    terminal.replay_typed_lines(["whoami"])
    assert [set(facts) for facts in terminal.facts_by_state.values()] == [{"host", "user"}]


def test_a_variant_shares_the_commands_that_no_number_changes() -> None:
    assert isinstance(XID.answer, LabSpec)
    pairs = zip(the_lab().commands, XID.answer.lab.commands, strict=True)
    same = [one is other for one, other in pairs]
    assert (any(same), all(same)) == (True, False)


def test_several_units_are_one_command_each() -> None:
    lab = with_blocks("$ systemctl stop a\n\n$ systemctl stop b\nb was off")

    assert output("systemctl stop a.service b", question=lab) == "b was off"
    assert len(typed("systemctl stop a b", question=lab).executed_command_indices) == 2


NCCL = """$ NCCL_DEBUG=INFO ./all_reduce_perf -b 1G
NET/Socket : Using eth0

$ NCCL_DEBUG=… ./all_reduce_perf …
any level

$ ./all_reduce_perf -b 1G
1.31 GB/s"""


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["NCCL_DEBUG=INFO ./all_reduce_perf -b 1G"], "NET/Socket : Using eth0"),
        (["sudo NCCL_DEBUG=INFO all_reduce_perf -b 1G | cat"], "NET/Socket : Using eth0"),
        (["env NCCL_DEBUG=INFO OTHER=1 ./all_reduce_perf -b 1G"], "NET/Socket : Using eth0"),
        (["export NCCL_DEBUG=INFO", "./all_reduce_perf -b 1G"], "NET/Socket : Using eth0"),
        (["export NCCL_DEBUG=INFO; ./all_reduce_perf -b 1G"], "NET/Socket : Using eth0"),
        (["NCCL_DEBUG=WARN ./all_reduce_perf -b 1G"], "any level"),
        (["export NCCL_DEBUG=INFO", "NCCL_DEBUG=WARN ./all_reduce_perf -b 1G"], "any level"),
        (["./all_reduce_perf -b 1G"], "1.31 GB/s"),
        (["OTHER=1 ./all_reduce_perf -b 1G"], "1.31 GB/s"),
        (["export NCCL_DEBUG=INFO", "unset NCCL_DEBUG", "./all_reduce_perf -b 1G"], "1.31 GB/s"),
    ],
)
def test_a_variable_of_the_author_before_a_command_has_to_be_typed(
    lines: list[str], answer: str
) -> None:
    assert output(*lines, question=with_blocks(NCCL)) == answer


def test_a_command_with_a_variable_only_does_not_answer_without_it() -> None:
    lab = with_blocks(NCCL.partition("\n\n")[0])

    refused = typed(
        "./all_reduce_perf -b 1G", "NCCL_DEBUG=WARN ./all_reduce_perf -b 1G", question=lab
    )
    assert [entry.is_refused for entry in refused.entries] == [True, True]
    assert typed("NCCL_DEBUG=INFO ./all_reduce_perf -b 1G", question=lab).executed_command_indices
    assert output("ls", question=lab) == "all_reduce_perf"


def lab_between(goal: str, info: str) -> ParsedFile:
    return parse_file(
        f"### Why?\n<!-- q: lab\ntype: console\nstart: full\ngoal: {goal}\n-->\n\n"
        f"```console {info}\n$ df\n100%\n```\n\n```console in full to free\n$ clean\n```\n> It is.\n\n"
        "```console in free\n$ ls\nbig.log\n```\n\n- [x] The disk\n  > So.\n- [ ] The net\n  > No.\n",
        "topics/kv-cache/quiz.md",
    )


@pytest.mark.parametrize("goal", ["full, free", "[full, free]", "full,free"])
@pytest.mark.parametrize("info", ["in full, free", "in [full, free]", "in full,free"])
def test_states_stand_between_commas_with_brackets_or_without(goal: str, info: str) -> None:
    [question] = lab_between(goal, info).questions

    lab = the_lab(question)
    assert (lab.goal, lab.commands[0].states) == (("full", "free"), ("full", "free"))


@pytest.mark.parametrize(
    ("goal", "info", "code", "remedy"),
    [
        ("full free", "in full", "E91", "Put commas between states: goal: full, free"),
        ("free", "in full free needed", "E89", "in STATE (several: in ONE, TWO), to STATE"),
        ("free", "in full or free", "E89", "in STATE (several: in ONE, TWO), to STATE"),
    ],
)
def test_states_without_a_comma_get_told_of_it(
    goal: str, info: str, code: str, remedy: str
) -> None:
    [problem] = lab_between(goal, info).problems

    assert problem.code == code
    assert remedy in problem.hint


@pytest.mark.parametrize(
    "line",
    [
        "systemctl status openibd",
        "systemctl is-active openibd.service",
        "systemctl status fabric",
        "journalctl -u openibd",
        "ibstat -s mlx5_0",
        "dmidecode -t system",
    ],
)
def test_what_the_author_names_somewhere_is_not_told_to_play_no_part(line: str) -> None:
    lab = with_blocks(
        "$ systemctl start openibd",
        "$ ibstat\nPhysical state: LinkUp",
        "$ dmesg\nsystemd: fabric.service: stopped",
        "$ cat a\nhello\n```\n\n```console in running\n$ dmidecode -t system\nvendor",
    )

    entry = typed(line, question=lab).entries[0]
    assert entry.is_refused
    assert not re.search("no part|not be found|No entries", entry.output)


def test_other_units_and_programs_still_play_no_part() -> None:
    lab = with_blocks("$ systemctl start openibd", "$ cat a\nPhysical state: LinkUp")

    assert "plays no part" in output("systemctl status cups", question=lab)
    assert "plays no part" in output("ibstat -s", question=lab)
    assert output("journalctl -u cups", question=lab) == "-- No entries --"


# --- grading ---


@pytest.mark.parametrize(
    ("lines", "right", "score"),
    [
        (["dmesg", DRAIN], True, 1.0),
        ([DRAIN, "sinfo", "journalctl -k | tail"], True, 1.0),
        (["dmesg", DRAIN], False, 0.5),
        (["dmesg"], True, 0.75),
        ([], True, 0.5),
        ([], False, 0.0),
        (["reboot", "dmesg", DRAIN], True, 0.75),
        (["reboot", "shutdown -r now", "dmesg", DRAIN], True, 0.75),
        (["reboot"], False, 0.0),
    ],
)
def test_goal_and_diagnosis_are_half_each_and_harm_takes_a_quarter(
    lines: list[str], right: bool, score: float
) -> None:
    assert graded(lines, right=right).score == score


def test_the_feedback_says_what_was_reached_and_what_did_harm() -> None:
    assert graded(["sinfo", "dmesg", DRAIN]).feedback.plain == (
        "Goal reached with 3 commands; 2 are enough. The diagnosis is right."
    )
    assert graded(["shutdown -r now"], right=False).feedback.plain == (
        "Goal not reached: 0 of 2 steps. Harmful: “shutdown -r now”. The diagnosis is not right."
    )


@pytest.mark.parametrize("sent", [[], ["zzzz"], ["all"]])
def test_no_diagnosis_and_two_of_them_cost_no_attempt(sent: list[str]) -> None:
    assert isinstance(XID.answer, LabSpec)
    keys = [o.key for o in XID.answer.diagnoses] if sent == ["all"] else sent

    assert isinstance(
        grade_response(variant(), {"ran": ["dmesg"], "answer": keys}), UnreadableResponse
    )


def test_number_and_length_of_the_lines_are_limited() -> None:
    many = graded(["x" * 500] * 90)

    assert len(many.parsed_response["lines"]) == MOST_LINES
    assert {len(line) for line in many.parsed_response["lines"]} == {LONGEST_LINE}


def test_it_is_never_in_an_exam_and_can_be_a_card() -> None:
    kind = kinds.question_type_of(XID)

    assert not XID.may_be_asked_in_exams
    assert kind.is_allowed_as_card
    assert kind.compute_guess_score(XID.answer, "") == pytest.approx(1 / 6)


def test_as_a_card_it_tells_the_diagnosis_and_the_way() -> None:
    front, back = render_question_card_faces(variant(), lambda hint: hint)

    assert "The job used too much GPU memory" in front
    assert "dmesg" not in front
    assert "<code>dmesg</code>" in back


def test_the_preview_shows_every_state_and_every_harmful_command() -> None:
    shown = [text for text, _ in kinds.question_type_of(XID).sample_responses(variant().answer)]

    assert shown[:1] == ["Goal reached, “The GPU fell off the bus”"]
    assert [s for s in shown if "state" in s or "Harmful" in s] == [
        "All answers in the state “up”",
        "Harmful in “up”: reboot",
        "All answers in the state “drained”",
        "Harmful in “drained”: reboot",
    ]


def test_authors_are_told_what_was_typed_first_and_where_learners_stopped() -> None:
    answer = variant().answer
    typed = (["sinfo"], ["dmesg", DRAIN], ["lctl", "dmesg"], [])
    responses = [SubmittedResponse(answer, {"ran": lines}) for lines in typed]
    tallies = kinds.question_type_of(XID).count_response_patterns(responses)

    assert tallies["Typed first"] == {"sinfo": 1, "dmesg": 1, "lctl (no answer)": 1}
    assert tallies["Stopped short of the goal after"] == {
        "sinfo": 1,
        "dmesg": 1,
        "nothing was typed": 1,
    }
    assert tallies["Had no answer"] == {"lctl": 1}


def test_its_wording_is_kept() -> None:
    assert QUESTION.validate_json(QUESTION.dump_json(XID)) == XID


def test_other_programs_get_a_single_choice_with_the_transcript() -> None:
    reading = read_items_of_course_file(TEXT, "topics/kv-cache/quiz.md")
    item = reading.items[0]

    assert (item.kind, len(item.options)) == ("single", 3)
    assert "$ dmesg\n[   12.118034]" in item.stem
    assert {r.sentence for r in reading.losses} >= {
        "its terminal is not exported; the transcript of the way to the goal is"
    }


# --- the page ---


def test_enter_sends_one_line_and_the_page_shows_the_transcript(client, form) -> None:
    page = client.get(ADDRESS).text
    sent = form(page)
    assert "Goal: 0 of 2\u00a0steps done" in page
    assert "GPU has fallen off the bus." not in page

    values = {**sent.values, "command": "dmesg -T", "move": "enter"}
    shown = client.get(ADDRESS, params=values).text

    assert "GPU has fallen off the bus." in shown
    assert "Goal: 1 of 2\u00a0steps done" in shown
    assert form(shown).values["ran"] == "dmesg -T"
    assert form(shown).values["command"] == ""


def test_a_script_gets_the_answer_to_the_last_line_alone(client, form) -> None:
    values = form(client.get(ADDRESS).text).values
    values |= {"ran": ["sinfo"] * 20, "command": "dmesg", "move": "enter"}
    headers = {"HX-Request": "true", "HX-Target": "q-lab-xid-log"}
    part = client.get(f"{ADDRESS}/form", params=values, headers=headers).text
    whole = client.get(f"{ADDRESS}/form", params=values, headers={"HX-Request": "true"}).text

    assert (part.count('class="entry'), whole.count('class="entry')) == (1, 21)
    assert part.count('name="ran"') == whole.count('name="ran"') == 21
    assert "fallen off the bus" in part.partition("opts")[0]


def test_a_lab_can_be_begun_again_at_any_time(client, form) -> None:
    page = client.get(ADDRESS).text
    values = {**form(page).values, "command": "ls", "move": "enter"}
    shown = client.get(ADDRESS, params=values).text

    for text in (page, shown):
        assert text.count(f'<a href="{ADDRESS}">begin again</a>') == 1


def test_who_repaired_before_the_look_is_told_to_begin_again(client, form) -> None:
    address = "/quiz/kv-cache/lab-pod"
    look, mend = "kubectl describe pod llm-0 -n train", "kubectl taint nodes --all nvidia.com/gpu-"
    values = {**form(client.get(address).text).values, "move": "enter"}

    lost = client.get(address, params={**values, "command": mend}).text
    still = client.get(address, params={**values, "ran": [look], "command": mend}).text

    assert f'had to be done before the last change: <a href="{address}">begin again</a>.' in lost
    assert "had to be done" not in still


def test_one_command_before_the_repair_and_again_after_it_is_two_steps() -> None:
    text = TEXT.replace(
        "```console in free, running\n$ kubectl describe",
        "```console in free, running needed\n$ kubectl describe",
    )
    question = parse_file(text, "topics/kv-cache/quiz.md").questions[2]
    look, mend = "kubectl describe pod llm-0 -n train", "kubectl taint nodes --all nvidia.com/gpu-"
    before, after = (typed(*lines, question=question) for lines in ([look, mend], [mend, look]))
    both = typed(look, mend, look, question=question)

    assert text != TEXT
    assert len(both.reached_goals) == len(before.reached_goals) + 1 == len(after.reached_goals) + 1


def test_a_line_that_was_not_sent_stays_in_the_field(client, form) -> None:
    sent = form(client.get(ADDRESS).text)
    shown = client.get(ADDRESS, params={**sent.values, "command": "dme", "more": "1"}).text

    assert form(shown).values["command"] == "dme"
    assert "The kernel log holds" in shown


def test_what_learners_type_is_escaped(client, form) -> None:
    sent = form(client.get(ADDRESS).text)
    values = {**sent.values, "command": "<b>x</b>", "move": "enter"}

    assert "<b>x</b>" not in client.get(ADDRESS, params=values).text


def test_an_answer_is_graded_once_and_shows_the_shortest_way(client, form) -> None:
    sent = form(client.get(ADDRESS).text)
    host = draw_variant(XID, int(sent.values["seed"])).answer.lab.host.plain  # type: ignore[union-attr]
    lines = ["dmesg", DRAIN.replace("dgx-03", host), "sinfo"]
    data = {**sent.values, "ran": lines, "answer": key_of(XID, right=True)}
    first, again = (client.post(sent.action, data=data) for _ in range(2))
    shown = client.get(first.headers["location"]).text

    assert first.headers["location"] == again.headers["location"]
    assert "Right" in shown
    assert "Goal reached with 3 commands; 2 are enough." in shown
    assert "The shortest good way" in shown
    assert "<code>sinfo</code>" in shown


def test_no_diagnosis_keeps_what_was_typed(client, form) -> None:
    sent = form(client.get(ADDRESS).text)
    refused = client.post(sent.action, data={**sent.values, "ran": ["sinfo"]})

    assert refused.status_code == 422
    assert "No diagnosis is chosen." in refused.text
    assert form(refused.text).values["ran"] == "sinfo"


def test_after_forty_lines_no_more_are_taken(client, form) -> None:
    sent = form(client.get(ADDRESS).text)
    values = {**sent.values, "ran": ["sinfo"] * 60, "command": "dmesg", "move": "enter"}
    shown = client.get(ADDRESS, params=values).text

    assert shown.count('name="ran"') == MOST_LINES
    assert "No more than 40 commands are taken" in shown


def test_labs_are_listed_under_practice(client) -> None:
    page = client.get("/quiz").text

    assert "3\u00a0terminals to type commands into" in page
    assert re.search(r"A job on dgx-\w+ died", page)


def test_in_a_run_a_line_is_answered_where_the_run_stands(client, form) -> None:
    started = client.post("/quiz/runs", data={"pick": "topic:kv-cache", "count": 3, "token": "t"})
    run = started.headers["location"]
    pages = {place: client.get(f"{run}/{place}").text for place in (1, 2, 3)}
    place = next(p for p, html in pages.items() if "q-lab-xid-stem" in html)
    values = {**form(pages[place]).values, "command": "sinfo", "move": "enter"}
    shown = client.get(f"{run}/{place}", params=values).text

    assert "PARTITION AVAIL" in shown
    assert f"{run.removesuffix('/')}/{place}#q-lab-xid-command" in shown


STACKED = """### A?
<!-- q: a
goal: up
-->

```console
$ {one}
$ {two}
up
```

```console to up
$ go
```

- [x] Yes
- [ ] No
  > No.
"""


def test_a_change_right_below_another_command_is_asked_about() -> None:
    def count(one: str, two: str) -> int:
        text = STACKED.replace("{one}", one).replace("{two}", two)
        problems = parse_file(text, "topics/a/quiz.md").problems
        return sum("right below each other" in p.message for p in problems)

    assert count("systemctl restart web", "systemctl status web") == 1
    assert count("sudo kill 12", "ps aux") == 1
    assert count("systemctl restart web", "systemctl start web") == 0
    assert count("uptime", "w") == 0
