"""Learners in the database."""

from app.learners.store.people import (
    Enrollment,
    LearnerListRow,
    LearnerRecord,
    Records,
    add_code,
    adopt,
    change_settings,
    count_change,
    describe_records,
    enroll,
    find_code_owner,
    find_learner,
    hold,
    in_course,
    key_in,
    learner_numbered,
    people,
    use_code,
    void_codes,
)
from app.learners.store.sessions import (
    BrowserVisit,
    begin_session,
    browsers,
    digests_of,
    leave,
    revoke,
    revoke_others,
    rows_of,
    see,
)
