"""Countries (ISO 3166) by region, as operators of large services group them."""

from typing import Final

_COUNTRIES: Final = {
    "Africa": (
        "AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU "
        "MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW"
    ),
    "Asia-Pacific": (
        "AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN IO JP KG KH KI KP KR KZ LA LK MH MM MN MO MP "
        "MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TF TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS"
    ),
    "Europe": (
        "AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE "
        "LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK"
    ),
    "Latin America": (
        "AG AI AR AW BB BL BO BQ BR BS BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN HT JM KN KY LC "
        "MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI"
    ),
    "Middle East": ("AE BH EG IL IQ IR JO KW LB OM PS QA SA SY TR YE"),
    "North America": ("BM CA GL PM US"),
}

NAMES: Final = tuple(_COUNTRIES)

WIDTH: Final = 1 + max(map(len, _COUNTRIES.values()))
"""Of the part of ``CODES`` that a region has."""

CODES: Final = "".join(codes.ljust(WIDTH) for codes in _COUNTRIES.values())
"""All countries in one text. One search in it finds a country's region, which costs an engine less than
comparing with each country."""
