"""What changes if a numeric constant of the accountants is halved or doubled?"""
