"""Connection management of an overloaded server: mechanisms, and how a kernel is made to have them.

Source: Shukla and Brecht, TCP Connection Management Mechanisms for Improving Internet Server
Performance (2006).
"""
