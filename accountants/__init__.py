"""What does this cost?"""
