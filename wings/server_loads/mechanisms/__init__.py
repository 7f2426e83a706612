"""Connection management of an overloaded server: its mechanisms, and how a kernel gets them.

Source: Shukla and Brecht, TCP Connection Management Mechanisms for Improving Internet Server
Performance (2006).
"""
