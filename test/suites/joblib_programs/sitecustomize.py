"""Programs that joblib's tests start have the backend of Fairway, too."""

import joblib_backend  # noqa: F401
