# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`ElmoModel` of simple_elmo."""
