# The limits that a subscription's text is held to. limits.pyx says what each is.
cdef enum:
    LIMIT_LENGTH = 65536
    LIMIT_DEPTH = 64
    LIMIT_NAME = 32768
    LIMIT_NODES = 32768
    LIMIT_HEIGHT = 4000
    LIMIT_PATTERNS = 64
    LIMIT_PATTERN_NODES = 1000
    LIMIT_WORK = 1000000
