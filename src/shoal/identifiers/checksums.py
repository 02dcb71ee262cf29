"""Check digits: whether a number is one that its issuer could have given.

A number drawn at random passes one time in ten or fewer, so a column that nearly always passes holds such
numbers.
"""

from __future__ import annotations

import re

_VIN_VALUES = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", "12345678123457923456789", strict=True))
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


def luhn(digits: str) -> bool:
    """Check the last digit of payment cards and device numbers (Luhn; ISO/IEC 7812-1).

    >>> luhn("79927398713"), luhn("79927398710")
    (True, False)
    """
    total = 0
    for place, digit in enumerate(map(int, reversed(digits))):
        total += digit if place % 2 == 0 else (2 * digit - 9 if digit > 4 else 2 * digit)
    return total % 10 == 0


def nhs(digits: str) -> bool:
    """Check the tenth digit of an NHS number: weights 10 to 2, modulus 11.

    >>> nhs("9434765919"), nhs("9434765918")
    (True, False)
    """
    check = -sum(weight * int(digit) for weight, digit in zip(range(10, 1, -1), digits, strict=False)) % 11
    return check != 10 and check == int(digits[9])


def vin(text: str) -> bool:
    """Check the ninth character of a vehicle identification number (49 CFR 565.15).

    >>> vin("1M8GDM9AXKP042788"), vin("1M8GDM9A1KP042788")
    (True, False)
    """
    values = [int(_VIN_VALUES.get(letter, letter)) for letter in text]
    rest = sum(value * weight for value, weight in zip(values, _VIN_WEIGHTS, strict=True)) % 11
    return text[8] == ("X" if rest == 10 else str(rest))


def iban(text: str) -> bool:
    """Check the two digits of an account number (ISO 13616, modulus 97).

    >>> iban("GB82WEST12345698765432"), iban("GB83WEST12345698765432")
    (True, False)
    """
    return int("".join(str(int(letter, 36)) for letter in text[4:] + text[:4])) % 97 == 1


def ssn(area: str, group: str, serial: str) -> bool:
    """Tell whether a social security number can be one: no area 000, 666 or 9xx, and no part of zeros."""
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def nir(text: str) -> bool:
    """Check the key of a French social security number (modulus 97; Corsica counts as 19 and 18)."""
    number = text[:13].replace("2A", "19").replace("2B", "18")
    return number.isdigit() and 97 - int(number) % 97 == int(text[13:])


def bsn(digits: str) -> bool:
    """Check a Dutch citizen service number: weights 9 to 2 and -1, modulus 11."""
    weights = (9, 8, 7, 6, 5, 4, 3, 2, -1)
    found = sum(weight * int(digit) for weight, digit in zip(weights, digits.zfill(9), strict=True))
    return int(digits) > 0 and found % 11 == 0


def dni(text: str) -> bool:
    """Check the letter of a Spanish identity number (modulus 23; X, Y and Z count as 0, 1 and 2)."""
    number = re.sub("^[XYZ]", lambda found: str("XYZ".index(found.group())), text[:-1])
    return text[-1] == _DNI_LETTERS[int(number) % 23]


def kvnr(text: str) -> bool:
    """Check the last digit of a German health insurance number: the letter as two digits, weights 1 and 2."""
    digits = f"{ord(text[0]) - 64:02}{text[1:9]}"
    found = sum(sum(map(int, str(int(digit) * (1 + place % 2)))) for place, digit in enumerate(digits))
    return found % 10 == int(text[9])
