"""PRECONNECT: connections that a client opens before anything is asked (TFO paper section 8)."""
