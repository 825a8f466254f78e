"""xsift: which of a million standing XPath subscriptions does this XML document satisfy?"""
